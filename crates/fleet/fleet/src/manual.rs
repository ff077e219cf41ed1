//! Completions and manual pages, made from the definition of the command line.

use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use luc_cli::Shell;

use crate::arguments::FleetCli;

/// Print a shell's completion script for luc-fleet
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  luc-fleet completions bash > ~/.local/share/bash-completion/completions/luc-fleet
  luc-fleet completions zsh > ~/.zfunc/_luc-fleet        # a folder of your $fpath
  luc-fleet completions fish > ~/.config/fish/completions/luc-fleet.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    shell: Shell,
}

/// Print luc-fleet's manual page, or write one page per subcommand
///
/// The pages have the text of --help.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  luc-fleet man | man -l -
  luc-fleet man --dir ~/.local/share/man/man1       # then: man luc-fleet-explain")]
pub(crate) struct ManArgs {
    /// Write luc-fleet.1, luc-fleet-fit.1 and so on into this directory; make it if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> io::Result<()> {
    luc_cli::print_script(FleetCli::command(), args.shell)
}

pub(crate) fn man(args: &ManArgs) -> io::Result<()> {
    luc_cli::write_pages(FleetCli::command(), args.dir.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        luc_testkit::command_line::assert_names_are_unique(FleetCli::command());
    }
}
