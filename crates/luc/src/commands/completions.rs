//! `luc completions`: prints scripts by which shells complete luc's commands and options.

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, ValueEnum};
use clap_complete::aot;

/// Print a shell's completion script for luc
///
/// `make install` installs the scripts for bash, zsh and fish; use this command for other places.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc completions bash > ~/.local/share/bash-completion/completions/luc
  luc completions zsh > ~/.zfunc/_luc        # a folder of your $fpath
  luc completions fish > ~/.config/fish/completions/luc.fish")]
pub(crate) struct Args {
    /// Shell that reads the script
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(&script(args.shell))?;
    Ok(ExitCode::SUCCESS)
}

/// The script, made in memory because clap's generator panics when a pipe's reader has gone.
fn script(shell: Shell) -> Vec<u8> {
    let mut command = crate::Cli::command();
    let mut script = Vec::new();
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    aot::generate(shell, &mut command, "luc", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        luc_testkit::command_line::assert_names_are_unique(crate::Cli::command());
    }

    #[test]
    fn every_shell_completes_every_subcommand() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            for subcommand in crate::Cli::command().get_subcommands() {
                let name = subcommand.get_name();
                assert!(script.contains(name), "{shell:?} does not complete {name}");
            }
        }
    }

    #[test]
    fn bash_can_read_its_script() {
        let mut bash = match std::process::Command::new("bash")
            .args(["-n", "/dev/stdin"])
            .stdin(std::process::Stdio::piped())
            .spawn()
        {
            Ok(bash) => bash,
            Err(error) => {
                luc_testkit::skipped!("bash: {error}");
                return;
            }
        };
        let mut input = bash.stdin.take().unwrap();
        input.write_all(&script(Shell::Bash)).unwrap();
        drop(input);
        assert!(bash.wait().unwrap().success());
    }
}
