//! The client's process, seen from `luc faults`: a line of JSON out, a line of JSON back.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use luc_disk::ByteRange;
use luc_host::interrupt_flag::interrupted;
use luc_module::JournalStats;
use luc_units::OnPath as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::FaultTrials;
use super::error::FaultsError;
use super::fault_disk::{DIRECTORY_VARIABLE, FaultDisk};
use super::fault_trial::{FaultTrial, FaultTrialOutcome, TrialClientOrder, TrialClientReply};
use super::gate::{GateHeldCalls, TrialPolicy};

/// A client that has not answered by then hangs. Guests without hardware virtualization are slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for the client to end on order.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between checks for a signal, in ns.
const POLL_NS: i64 = 100_000_000;

/// A client at work; killed when dropped.
pub(super) struct TrialClient<'a> {
    plan: &'a FaultTrials,
    place: &'a FaultDisk,
    arm: String,
    is_plain: bool,
    /// The module's figures at its start.
    before: JournalStats,
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    unread: Vec<u8>,
}

impl<'a> TrialClient<'a> {
    /// Starts a client; `None`: without luc.
    pub(super) fn start(
        plan: &'a FaultTrials,
        place: &'a FaultDisk,
        policy: Option<&TrialPolicy>,
    ) -> Result<Self, FaultsError> {
        let luc = &plan.setting.luc;
        let mut words: Vec<OsString> = vec![luc.into(), "bench".into(), "fault-client".into()];
        words.extend(["--dir".into(), place.dir().into()]);
        words.extend(["--beside".into(), plan.beside.to_string().into()]);
        let arm =
            policy.map_or_else(|| "no policy".to_owned(), |policy| format!("policy {policy}"));
        let level = &plan.setting.level;
        let mut command = level.command(policy, place, &words)?;
        let before = level.stats(place)?;
        let errors = place.work().join("stderr");
        let errors = File::create(&errors).map_err(FaultsError::io("making a file", &errors))?;
        command
            .env(DIRECTORY_VARIABLE, place.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0);
        let start = |reason| FaultsError::Start { program: luc.display().to_string(), reason };
        let mut child = command.spawn().map_err(start)?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = from.ok_or_else(|| start(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self {
            plan,
            place,
            arm,
            is_plain: policy.is_none(),
            before,
            child,
            to,
            from,
            unread: Vec::new(),
        })
    }

    /// Returns has files made for `trials`; the bytes of the disk that are to fail.
    pub(super) fn prepare(&mut self, trials: &[FaultTrial]) -> Result<Vec<ByteRange>, FaultsError> {
        let order = TrialClientOrder::Prepare { trials: trials.to_vec() };
        match self.ask(&order)? {
            TrialClientReply::Prepared { ranges } if ranges.len() == trials.len() => Ok(ranges),
            other => Err(self.explain_reply("did not prepare its files", other)),
        }
    }

    /// Has the trials made.
    pub(super) fn go(
        &mut self,
        trials: &[FaultTrial],
    ) -> Result<Vec<FaultTrialOutcome>, FaultsError> {
        match self.ask(&TrialClientOrder::Go)? {
            TrialClientReply::Done { outcomes } if outcomes.len() == trials.len() => Ok(outcomes),
            other => Err(self.explain_reply("did not make its trials", other)),
        }
    }

    /// Ends the client. Returns what was held meanwhile.
    pub(super) fn end(mut self) -> Result<Option<GateHeldCalls>, FaultsError> {
        // It ends with its standard input.
        self.to = None;
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => break,
                Ok(Some(status)) => {
                    return Err(self.error(&format!("ended with {status}"), String::new()));
                }
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return Err(self.error("did not end", String::new())),
            }
        }
        if self.is_plain {
            return Ok(None);
        }
        self.plan.setting.level.held(self.place, &self.before)
    }

    fn ask(&mut self, order: &TrialClientOrder) -> Result<TrialClientReply, FaultsError> {
        let mut line = serde_json::to_vec(order).map_err(|error| self.explain_end(error.into()))?;
        line.push(b'\n');
        if let Some(to) = &mut self.to
            && let Err(error) = to.write_all(&line)
        {
            return Err(self.explain_end(error));
        }
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| self.explain_end(error.into()));
            }
            if interrupted() {
                return Err(FaultsError::Interrupted);
            }
            if Instant::now() >= deadline {
                let said = format!("nothing came for {} s", ANSWER_TIMEOUT.as_secs());
                return Err(self.error("hangs", said));
            }
            self.read().map_err(|error| self.explain_end(error))?;
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let time = Timespec { tv_sec: 0, tv_nsec: POLL_NS };
        match poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut buffer = [0; 16 << 10];
        match self.from.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.unread.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }

    fn explain_end(&self, error: io::Error) -> FaultsError {
        self.error("ended early", error.to_string())
    }

    fn explain_reply(&self, what: &str, reply: TrialClientReply) -> FaultsError {
        let said = match reply {
            TrialClientReply::Failed { reason } => reason,
            other => format!("{other:?}"),
        };
        self.error(what, said)
    }

    /// Builds an error with the last line of the client's standard error, if there is one.
    fn error(&self, what: &str, said: String) -> FaultsError {
        let errors = fs::read(self.place.work().join("stderr")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        let last = errors.lines().rfind(|line| !line.trim().is_empty());
        FaultsError::Client {
            arm: self.arm.clone(),
            what: what.to_owned(),
            said: last.map_or(said, str::to_owned),
        }
    }
}

impl Drop for TrialClient<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // SAFETY: a system call with plain integers. The group is that of our child, which has not been waited for and
        // so cannot be somebody else's.
        unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
        // It was killed: its status says nothing.
        let _ = self.child.wait();
    }
}
