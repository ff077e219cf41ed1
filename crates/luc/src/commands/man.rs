//! `luc man`: the manual pages, made from the same definition as the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::CommandFactory;

/// Print luc's manual page, or write one page per subcommand
///
/// The pages have the text of --help.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc man | man -l -                          # read the first page
  luc man --dir ~/.local/share/man/man1       # then: man luc-run")]
pub(crate) struct Args {
    /// Write luc.1, luc-run.1 and so on into this directory; make it if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    match args.dir {
        Some(dir) => write_pages(&dir).map_err(|error| {
            let dir = dir.display();
            anyhow!("{dir}: {error}; choose a directory that you may write to")
        })?,
        None => {
            let mut page = Vec::new();
            let command = crate::Cli::command().disable_help_subcommand(true);
            clap_mangen::Man::new(command).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_pages(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(crate::Cli::command(), dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_its_page() {
        let dir = std::env::temp_dir().join(format!("luc-man-test-{}", std::process::id()));
        write_pages(&dir).unwrap();
        let pages: Vec<_> = crate::Cli::command()
            .get_subcommands()
            .map(|subcommand| format!("luc-{}.1", subcommand.get_name()))
            .chain(["luc.1".to_owned()])
            .map(|name| (std::fs::read_to_string(dir.join(&name)), name))
            .collect();
        std::fs::remove_dir_all(&dir).unwrap();
        for (page, name) in pages {
            assert!(page.unwrap().contains(".SH SYNOPSIS"), "{name}");
        }
    }
}
