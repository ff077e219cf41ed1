//! Programs that listen on a port, and end with this process.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::stop_if_interrupted;

/// User that runs servers which refuse to be root.
pub(crate) const USER: &str = "nobody";
const GROUP: &str = "nogroup";

/// Maximum time for a server to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which a server is looked at.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Begins a command line whose program gets `signal` when this process ends in any way.
pub(crate) fn bound(signal: &str, as_user: bool) -> Command {
    let mut command = Command::new("setpriv");
    if as_user {
        command.args(["--reuid", USER, "--regid", GROUP, "--clear-groups"]);
    }
    command.args(["--pdeathsig", signal]);
    command.stdin(Stdio::null());
    command
}

fn log(path: &Path) -> Result<[Stdio; 2], EvaluateError> {
    let file = fs::File::create(path).map_err(EvaluateError::file("make", path))?;
    let copy = file.try_clone().map_err(EvaluateError::file("write", path))?;
    Ok([file.into(), copy.into()])
}

/// Starts a program whose output goes to a file.
pub(crate) fn started(mut command: Command, log_path: &Path) -> Result<Child, EvaluateError> {
    let [out, err] = log(log_path)?;
    let program = command.get_program().to_owned();
    command.stdout(out).stderr(err).spawn().map_err(EvaluateError::file("run", program))
}

/// Returns a port that nobody listens on.
pub(crate) fn free_port() -> Result<u16, EvaluateError> {
    free_ports::<1>().map(|[port]| port)
}

/// Returns different free ports. Each is held until all are known.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], EvaluateError> {
    let failed = || EvaluateError::file("listen on", "127.0.0.1");
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed())?;
        *port = listener.local_addr().map_err(failed())?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Waits until somebody listens on a port.
pub(crate) fn answers(port: u16) -> Result<(), EvaluateError> {
    let began = Instant::now();
    loop {
        stop_if_interrupted()?;
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(_) => return Ok(()),
            Err(_) if began.elapsed() < ANSWER_TIMEOUT => thread::sleep(POLL_INTERVAL),
            Err(error) => {
                return Err(EvaluateError::file("connect to", format!("port {port}"))(error));
            }
        }
    }
}
