//! Programs that the parts of many hosts run.

use std::path::PathBuf;

use luc_harness::error::EvaluateError;
use serde_json::json;

use crate::cost::{loaded, recorded};
use crate::pools::{self, back_end};
use crate::scale::{self, Shape};
use crate::solr::{clients, tap, trouble};
use crate::unix;

#[derive(Debug, clap::Subcommand)]
pub enum Helper {
    #[command(hide = true)]
    Loaded(loaded::LoadedServerArguments),
    #[command(hide = true)]
    PlantedFleet { directory: PathBuf, rows: u64 },
    #[command(hide = true)]
    Trees { shape: Shape, nodes: u32, seed: u64 },
    #[command(hide = true)]
    Rows { trace: PathBuf },
    #[command(hide = true)]
    BackEnd(back_end::NamingBackEndArguments),
    #[command(hide = true)]
    PoolClients(pools::clients::Load),
    #[command(hide = true)]
    JudgePool(pools::Files),
    #[command(hide = true)]
    JudgeUnix(unix::Files),
    #[command(hide = true)]
    Hog { threads: u64 },
    #[command(hide = true)]
    Tap { to: PathBuf },
    #[command(hide = true)]
    SearchClients(clients::SearchClientsArguments),
}

impl Helper {
    /// Returns what it prints.
    ///
    /// # Errors
    /// [`EvaluateError`] of the helper.
    pub fn run(self) -> Result<String, EvaluateError> {
        let said = match self {
            Self::Loaded(arguments) => json!(loaded::run(&arguments)?),
            Self::PlantedFleet { directory, rows } => scale::write(&directory, rows)?,
            Self::Trees { shape, nodes, seed } => json!(scale::time(shape, nodes, seed)?),
            Self::Rows { trace } => json!(recorded::rows(&trace)?),
            Self::PoolClients(load) => json!(pools::clients::ask(load)?),
            Self::JudgePool(files) => pools::judge(&files)?,
            Self::JudgeUnix(files) => unix::judge(&files)?,
            Self::SearchClients(arguments) => json!(clients::run(&arguments)?),
            Self::BackEnd(arguments) => return back_end::run(&arguments).map(|()| String::new()),
            Self::Hog { threads } => return trouble::hog(threads).map(|()| String::new()),
            Self::Tap { to } => return tap::run(&to).map(|()| String::new()),
        };
        Ok(said.to_string())
    }
}
