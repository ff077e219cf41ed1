//! Completions and manual pages, made from the definition of a command line.

use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, ValueEnum};
use clap_complete::aot;
use clap_mangen::Man;

/// A shell that completes commands and options.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The script by which a shell completes a program's commands and options. It is made in memory, because clap's
/// generator panics when a pipe's reader has gone.
#[must_use]
pub fn script(mut command: Command, shell: Shell) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    aot::generate(shell, &mut command, name, &mut script);
    script
}

/// Prints [`script`].
///
/// # Errors
/// Standard output cannot be written to.
pub fn print_script(command: Command, shell: Shell) -> io::Result<()> {
    io::stdout().write_all(&script(command, shell))
}

/// Prints a program's manual page; with `dir`, writes one page for each subcommand into it, and makes it if it is
/// missing.
///
/// # Errors
/// The folder or standard output cannot be written to; the text names the folder and the next step.
pub fn write_pages(command: Command, dir: Option<&Path>) -> io::Result<()> {
    if let Some(dir) = dir {
        return write_into(command, dir).map_err(|error| {
            let text =
                format!("{}: {error}; choose a directory that you may write to", dir.display());
            io::Error::new(error.kind(), text)
        });
    }
    let mut page = Vec::new();
    Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
    io::stdout().write_all(&page)
}

fn write_into(command: Command, dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command, dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let subcommands = ["one", "two"].map(Command::new);
        Command::new("program").subcommands(subcommands)
    }

    #[test]
    fn every_shell_completes_every_subcommand() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(program(), *shell)).expect("text");
            for name in ["one", "two"] {
                assert!(script.contains(name), "{shell:?} does not complete {name}");
            }
        }
    }

    #[test]
    fn every_subcommand_has_its_page() {
        let folder = tempfile::tempdir().expect("a directory");
        let dir = folder.path().join("new");
        write_pages(program(), Some(&dir)).expect("written");
        for name in ["program", "program-one", "program-two"] {
            let page = std::fs::read_to_string(dir.join(format!("{name}.1"))).expect("a page");
            assert!(page.contains(".SH SYNOPSIS"), "{name}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = write_pages(program(), Some(&file.join("below"))).expect_err("no folder");
        let text = error.to_string();
        assert!(text.contains("file/below: ") && text.ends_with("write to"), "{text}");
    }
}
