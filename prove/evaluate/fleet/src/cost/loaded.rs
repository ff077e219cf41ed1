//! A client that loads a server, and the processor time of the client, the server and a recorder.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{line, missing};
use luc_host::processor_time::spent_by_s;
use luc_host::resource_usage::ResourceUsage;
use serde::{Deserialize, Serialize};

/// Time for a server to end its processes for a client: only ended processes are counted.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Options of `luc-evaluate loaded`.
#[derive(Debug, Clone, clap::Args)]
pub struct LoadedServerArguments {
    /// Processes of the server, which count with their children
    #[arg(long = "server", required = true)]
    servers: Vec<u32>,
    /// Process of the recorder, if there is one
    #[arg(long)]
    recorder: Option<u32>,
    /// Time to wait before, s
    #[arg(long, default_value_t = 0.0)]
    warmup: f64,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Measurements from the client's start to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loaded {
    pub seconds: f64,
    /// Processor time of the client.
    pub client_s: f64,
    pub server_s: f64,
    /// Processor time of the recorder; 0 without one.
    pub recorder_s: f64,
    pub said: String,
}

/// Runs the client and measures.
///
/// # Errors
/// [`EvaluateError`]: the client cannot be run, or it failed; the server or the recorder is gone.
pub fn run(arguments: &LoadedServerArguments) -> Result<Loaded, EvaluateError> {
    let Some((program, words)) = arguments.command.split_first() else {
        return Err(missing("a client"));
    };
    thread::sleep(Duration::from_secs_f64(arguments.warmup.clamp(0.0, 60.0)));
    let of = |process| spent_by_s(process).ok_or_else(|| missing("a process that is measured"));
    let server_s = || arguments.servers.iter().map(|&process| of(process)).sum::<Result<f64, _>>();
    let recorder_s = || arguments.recorder.map_or(Ok(0.0), of);
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit());
    let client_s = || ResourceUsage::of_children().processor_s();
    let before = (server_s()?, recorder_s()?, client_s());
    let began = Instant::now();
    let output = command.output().map_err(EvaluateError::file("run", program))?;
    let seconds = began.elapsed().as_secs_f64();
    let (recorder_s, client_s) = (recorder_s()? - before.1, client_s() - before.2);
    if !output.status.success() {
        return Err(EvaluateError::Command {
            command: line(&command),
            how: output.status.to_string(),
            said: "see above".to_owned(),
        });
    }
    thread::sleep(SETTLE_TIME);
    Ok(Loaded {
        seconds,
        client_s,
        server_s: server_s()? - before.0,
        recorder_s,
        said: String::from_utf8_lossy(&output.stdout).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> LoadedServerArguments {
        LoadedServerArguments {
            servers: vec![std::process::id()],
            recorder: None,
            warmup: 0.0,
            command: words.iter().map(OsString::from).collect(),
        }
    }

    #[test]
    fn the_client_s_time_and_words() {
        let busy = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; echo done";
        let loaded = run(&arguments(&["sh", "-c", busy])).expect("a shell");
        assert_eq!(loaded.said, "done\n");
        assert!(loaded.client_s > 0.0, "{loaded:?}");
        assert_eq!(loaded.recorder_s, 0.0);
    }

    #[test]
    fn a_client_that_fails_is_no_measurement() {
        assert!(run(&arguments(&["false"])).is_err());
        assert!(run(&arguments(&[])).is_err());
    }
}
