//! The first call of all is answered wherever its keeper is killed; until then a command is not executed.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus};

use luc_gate::shared_values::{Shareable, from_bytes};

use super::*;

/// Descriptors of a keeper that this test replaces, and a command whose process waits in its first call.
struct Waits {
    listener: OwnedFd,
    ledger: Arc<MappedLedger>,
    /// The ends of the supervisor and of the keeper.
    control: (UnixStream, UnixStream),
    command: JoinHandle<io::Result<ExitStatus>>,
}

impl Waits {
    /// Whether a keeper has received the call, and was killed before it answered. `None`, and a line that says why,
    /// where no call can be notified.
    fn new(was_received: bool) -> Option<Self> {
        if let Err(error) = available() {
            luc_testkit::skipped!("{error}");
            return None;
        }
        let (child, of_child) = UnixStream::pair().unwrap();
        let mut installing = FilterInstallation::new(child, true);
        let command = thread::spawn(move || {
            let mut command = Command::new("true");
            // SAFETY: as for a `luc run`.
            unsafe { command.pre_exec(move || installing.install()) };
            command.status()
        });
        let (status, listener) = pass_descriptor::receive(of_child.as_raw_fd()).unwrap();
        let listener = listener.unwrap();
        let control = UnixStream::pair().unwrap();
        pass_descriptor::send(control.1.as_raw_fd(), status, Some(listener.as_raw_fd())).unwrap();
        pass_descriptor::send(of_child.as_raw_fd(), 0, None).unwrap();
        let ledger = Arc::new(MappedLedger::new().unwrap());
        if was_received {
            assert_eq!(seccomp_unotify::is_waiting(listener.as_raw_fd(), -1), ListenerState::Call);
            ledger.first().receive(listener.as_raw_fd()).unwrap();
            assert!(!ledger.has_begun());
        }
        Some(Self { listener, ledger, control, command })
    }
}

#[test]
fn the_next_keeper_answers_the_first_call() {
    for was_received in [false, true] {
        let Some(waits) = Waits::new(was_received) else {
            return;
        };
        let source = ListenerSource::Own(waits.listener.as_fd());
        let keeper = KeeperProcess::start(&waits.ledger, waits.control.1.as_fd(), source).unwrap();
        assert!(waits.command.join().unwrap().unwrap().success());
        keeper.wait_long();
        // It answers first, and then takes note of that.
        assert!(waits.ledger.has_begun());
    }
}

#[test]
fn a_keeper_that_is_lost_before_the_first_call_is_replaced() {
    for was_received in [false, true] {
        let Some(waits) = Waits::new(was_received) else {
            return;
        };
        // One that ends at once, as nobody hands it a listener.
        let (closed, of_keeper) = UnixStream::pair().unwrap();
        let control = waits.control.1;
        drop(closed);
        let source = ListenerSource::Child(of_keeper.as_fd());
        let lost = KeeperProcess::start(&waits.ledger, control.as_fd(), source).unwrap();
        let prepared = PreparedNotifier {
            control: waits.control.0,
            keeper: lost,
            ledger: Arc::clone(&waits.ledger),
        };
        drop((control, waits.listener));
        let beginning = prepared.begin(work()).unwrap();
        assert!(waits.command.join().unwrap().unwrap().success());
        assert_eq!(beginning.join().unwrap().end().keeper, None);
        assert!(waits.ledger.has_begun());
    }
}

fn work() -> NotifierWork {
    NotifierWork {
        arena: zeros(),
        figures: zeros(),
        settings: CallSettings { policy: luc_gate::GatePolicy::Off, longest_wait_ns: 20_000_000 },
        count_only: Vec::new(),
    }
}

fn zeros<T: Shareable>() -> &'static T {
    Box::leak(from_bytes(&vec![0; size_of::<T>()]).unwrap())
}
