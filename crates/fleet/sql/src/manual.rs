//! Completions and manual pages, made from the definition of the command line.

use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use luc_cli::Shell;

use crate::arguments::Cli;

/// Print a shell's completion script for luc-fleet-sql
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  luc-fleet-sql completions bash > ~/.local/share/bash-completion/completions/luc-fleet-sql
  luc-fleet-sql completions zsh > ~/.zfunc/_luc-fleet-sql        # a folder of your $fpath
  luc-fleet-sql completions fish > ~/.config/fish/completions/luc-fleet-sql.fish")]
pub(crate) struct Completions {
    /// Shell that reads the script
    shell: Shell,
}

/// Print luc-fleet-sql's manual page, or write one page per subcommand
///
/// The pages have the text of --help.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  luc-fleet-sql man | man -l -
  luc-fleet-sql man --dir ~/.local/share/man/man1       # then: man luc-fleet-sql-sql")]
pub(crate) struct Man {
    /// Write luc-fleet-sql.1, luc-fleet-sql-sql.1 and so on into this directory; make it if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions) -> io::Result<()> {
    luc_cli::print_script(Cli::command(), args.shell)
}

pub(crate) fn man(args: &Man) -> io::Result<()> {
    luc_cli::write_pages(Cli::command(), args.dir.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        luc_testkit::command_line::assert_names_are_unique(Cli::command());
    }
}
