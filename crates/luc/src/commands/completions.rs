//! `luc completions`: prints scripts by which shells complete luc's commands and options.

use std::process::ExitCode;

use clap::CommandFactory as _;
use luc_manual::Shell;

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

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    luc_manual::print_script(crate::Cli::command(), args.shell)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        luc_testkit::command_line::assert_names_are_unique(crate::Cli::command());
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
        let script = luc_manual::script(crate::Cli::command(), Shell::Bash);
        input.write_all(&script).unwrap();
        drop(input);
        assert!(bash.wait().unwrap().success());
    }
}
