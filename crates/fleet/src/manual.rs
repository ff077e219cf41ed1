//! Completions and manual pages, made from the definition of the command line.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::aot;

use crate::arguments::Cli;

/// Print a shell's completion script for luc-fleet
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  luc-fleet completions bash > ~/.local/share/bash-completion/completions/luc-fleet
  luc-fleet completions zsh > ~/.zfunc/_luc-fleet        # a folder of your $fpath
  luc-fleet completions fish > ~/.config/fish/completions/luc-fleet.fish")]
pub(crate) struct Completions {
    /// Shell that reads the script
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print luc-fleet's manual page, or write one page per subcommand
///
/// The pages have the text of --help.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  luc-fleet man | man -l -
  luc-fleet man --dir ~/.local/share/man/man1       # then: man luc-fleet-explain")]
pub(crate) struct Man {
    /// Write luc-fleet.1, luc-fleet-fit.1 and so on into this directory; make it if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions) -> io::Result<()> {
    io::stdout().write_all(&script(args.shell))
}

/// The script, made in memory because clap's generator panics when a pipe's reader has gone.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    aot::generate(shell, &mut Cli::command(), "luc-fleet", &mut script);
    script
}

pub(crate) fn man(args: &Man) -> io::Result<()> {
    if let Some(dir) = &args.dir {
        return write_pages(dir).map_err(|error| {
            let text = format!(
                "{}: {error}; choose a directory that you may write to",
                dir.display()
            );
            io::Error::new(error.kind(), text)
        });
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command().disable_help_subcommand(true)).render(&mut page)?;
    io::stdout().write_all(&page)
}

fn write_pages(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(Cli::command(), dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        luc_testkit::command_line::assert_names_are_unique(Cli::command());
    }

    #[test]
    fn every_shell_completes_every_subcommand_and_each_has_a_page() {
        let folder = tempfile::tempdir().expect("a directory");
        write_pages(folder.path()).expect("written");
        for subcommand in Cli::command().get_subcommands() {
            let name = subcommand.get_name();
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                let script = String::from_utf8(script(shell)).expect("text");
                assert!(script.contains(name), "{shell:?} does not complete {name}");
            }
            let page = folder.path().join(format!("luc-fleet-{name}.1"));
            let page = std::fs::read_to_string(page).expect("a page");
            assert!(page.contains(".SH SYNOPSIS"), "{name}");
        }
    }
}
