//! `lucd`: serves the calls of all notified services, so that they meet in the same rounds, whatever users they run as.
//!
//! - `admission`: decides who is served; `refusal_limit`: limits the attempts of users who are not.
//! - `containers`: containers, whose runtimes connect elsewhere.
//! - `descriptor_store`: descriptors that systemd keeps for the next `lucd`.
//!
//! Each service and each container has a thread of its own and a keeper. They share rounds in memory. Only this
//! process has mapped that memory, and root's programs under `luc run` or with the library.

mod admission;
mod containers;
mod daemon_log;
mod descriptor_store;
mod refusal_limit;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use daemon_log::say;
use descriptor_store::StoredDescriptors;
use luc_gate::figures::RunFigures;
use luc_gate::rounds::UserRounds;
use luc_gate::rounds::join::LONGEST_WAIT_NS;
use luc_gate::unit_shared_files::UnitSharedFiles;
use luc_gate::{CallSettings, GatePolicy};
use luc_notify::command_notifier::NotifierWork;
use luc_notify::service_notifier::{self, ConnectedService, SavedDescriptors, ServedService};
use luc_units::OnPath as _;
use refusal_limit::RefusalLimit;

use crate::ServiceError;
use crate::containers::container_state::UNIT_SUFFIX;
use crate::enable_plan::SOCKET;

/// Maximum number of a service's filters that are served at a time: a program that connects again and again must not
/// make processes without end.
const MAX_FILTERS_PER_UNIT: usize = 16;

/// Number of ignored connections after which `lucd` pauses. So users that connect without end wait for their turn, and
/// take no processor from others.
const IGNORED_PER_PAUSE: u32 = 4;
const IGNORED_PAUSE: Duration = Duration::from_millis(1);

/// Length of the queue of connections. One that comes behind as many ignored ones waits for 64 ms.
const QUEUE_LENGTH: i32 = 256;

/// Maximum number of a service's filters that are begun in a second: each takes a process.
const MAX_FILTERS_PER_SECOND: u32 = 32;

/// Unit that the files of the rounds are named after too: they stay as long as it runs.
const OWN_UNIT: &str = "lucd.service";

/// State that all threads share.
#[derive(Debug)]
struct Lucd {
    arena: &'static UserRounds,
    units: Mutex<Units>,
}

#[derive(Debug, Default)]
struct Units {
    known: BTreeMap<String, Unit>,
    /// Figures of containers that have ended, for reuse: there may be any number of containers, one after the other.
    spare: Vec<(String, &'static RunFigures)>,
}

/// A service that is served, or was.
#[derive(Debug)]
struct Unit {
    figures: &'static RunFigures,
    /// Number of its filters that are served.
    served: usize,
    /// Start of the current second.
    second: Instant,
    begun: u32,
}

impl Unit {
    fn new(figures: &'static RunFigures) -> Self {
        Self { figures, served: 0, second: Instant::now(), begun: 0 }
    }

    /// Counts one filter more. The error says why there may be none.
    fn begin(&mut self) -> Result<&'static RunFigures, String> {
        if self.served >= MAX_FILTERS_PER_UNIT {
            return Err(format!("it has {MAX_FILTERS_PER_UNIT} filters already"));
        }
        if self.second.elapsed() >= Duration::from_secs(1) {
            (self.second, self.begun) = (Instant::now(), 0);
        }
        if self.begun >= MAX_FILTERS_PER_SECOND {
            return Err(format!("it has begun {MAX_FILTERS_PER_SECOND} filters in a second"));
        }
        self.begun += 1;
        self.served += 1;
        Ok(self.figures)
    }
}

/// Serves until a signal ends the process. Its keepers then go on, and the next `lucd` takes the services back.
///
/// # Errors
/// [`ServiceError`]: it cannot begin.
pub fn run() -> Result<(), ServiceError> {
    let taken = descriptor_store::take();
    if !rustix::process::geteuid().is_root() {
        return Err(ServiceError::NotRoot);
    }
    let (arena, _) = UnitSharedFiles::new(OWN_UNIT, 0).open()?;
    arena.forget();
    let lucd = Arc::new(Lucd { arena, units: Mutex::default() });
    for (stored, lasting) in taken.left {
        let lucd = Arc::clone(&lucd);
        let unit = stored.unit().to_owned();
        if let Err(error) = start("resumed", move || lucd.resume(&stored, &lasting)) {
            say(format_args!("{unit}: left to its keeper: {error}"));
        }
    }
    for socket in taken.sockets {
        let lucd = Arc::clone(&lucd);
        if let Err(error) = start("containers", move || containers::serve(&lucd, socket)) {
            say(format_args!("no containers are served: {error}"));
        }
    }
    let listener = listen(Path::new(SOCKET)).map_err(ServiceError::io("listened at", SOCKET))?;
    descriptor_store::ready();
    let mut patience = RefusalLimit::default();
    for connection in listener.incoming() {
        match connection {
            Ok(connection) => lucd.meet(&mut patience, connection),
            Err(error) => {
                say(format_args!("a connection is lost: {error}"));
                // Nothing is accepted any more while there is no descriptor left.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
    Ok(())
}

/// Removes the files and the socket of a `lucd` that has ended.
///
/// # Errors
/// [`ServiceError`]: something could not be removed.
pub fn clear() -> Result<(), ServiceError> {
    let containers = luc_gate::unit_shared_files::ending_in(UNIT_SUFFIX);
    for unit in containers.iter().map(String::as_str).chain([OWN_UNIT]) {
        luc_gate::unit_shared_files::remove(unit)
            .map_err(ServiceError::io("removed", "what lucd shares"))?;
    }
    match fs::remove_file(SOCKET) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ServiceError::io("removed", SOCKET)(error))
        }
        _ => Ok(()),
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    rustix::net::listen(&listener, QUEUE_LENGTH)?;
    // Services run as all kinds of users; who may be served is asked of each connection.
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Serves until the last process under the filter has ended. Meanwhile systemd keeps what the next `lucd` needs.
fn serve_to_the_end(
    unit: &str,
    stored: &StoredDescriptors,
    served: ServedService,
    lasting: SavedDescriptors,
) {
    stored.keep(&lasting);
    drop(lasting);
    served.wait();
    stored.forget();
    say(format_args!("{unit}: the last process under the filter has ended"));
}

/// Starts a thread. If there is none, this process goes on, and keepers serve in the thread's place.
fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}

impl Lucd {
    /// Looks at a connection, and starts a thread that serves it if it may be served. Nothing here waits for a peer.
    fn meet(self: &Arc<Self>, patience: &mut RefusalLimit, connection: UnixStream) {
        let user = admission::user(&connection);
        if !patience.listens(user) {
            if patience.has_ignored(IGNORED_PER_PAUSE) {
                thread::sleep(IGNORED_PAUSE);
            }
            return;
        }
        let (unit, process) = match admission::admit(&connection) {
            Ok(admitted) => admitted,
            Err(reason) => return patience.refuse(user, &reason),
        };
        let figures = match self.begin(&unit) {
            Ok(figures) => figures,
            Err(reason) => return patience.refuse(user, &format!("{unit}: {reason}")),
        };
        let lucd = Arc::clone(self);
        let of_thread = unit.clone();
        let started = start("service", move || {
            lucd.serve(&connection, &of_thread, process, figures);
        });
        if let Err(error) = started {
            self.end(&unit);
            patience.refuse(user, &format!("{unit}: it runs without luc: {error}"));
        }
    }

    /// Serves a service's first process until the last one under its filter has ended.
    fn serve(
        &self,
        connection: &UnixStream,
        unit: &str,
        process: u32,
        figures: &'static RunFigures,
    ) {
        let served = ConnectedService::welcome(connection, unit)
            .and_then(|guest| guest.begin(process, self.work(figures)));
        match served {
            Ok((served, lasting)) => {
                say(format_args!("{unit}: served, process {process} and all that it starts"));
                serve_to_the_end(unit, &StoredDescriptors::new(unit), served, lasting);
            }
            Err(error) => say(format_args!("{unit}: it runs without luc: {error}")),
        }
        self.end(unit);
    }

    /// Goes on with a service of an earlier `lucd`.
    fn resume(&self, stored: &StoredDescriptors, lasting: &SavedDescriptors) {
        let unit = stored.unit();
        match self.begin(unit) {
            Ok(figures) => {
                match service_notifier::resume(lasting, self.work(figures)) {
                    Ok(served) => {
                        say(format_args!("{unit}: served again"));
                        served.wait();
                    }
                    Err(error) => say(format_args!("{unit}: left to its keeper: {error}")),
                }
                self.end(unit);
            }
            Err(reason) => say(format_args!("{unit}: left to its keeper: {reason}")),
        }
        stored.forget();
    }

    /// Counts one filter more of a unit. Returns the unit's figures.
    fn begin(&self, unit: &str) -> Result<&'static RunFigures, String> {
        let mut units = self.units();
        if let Some(known) = units.known.get_mut(unit) {
            return known.begin();
        }
        let spare = units.spare.pop();
        let spare =
            spare.filter(|(before, _)| luc_gate::unit_shared_files::hand_on(before, unit).is_ok());
        let figures = match spare {
            Some((_, figures)) => figures,
            None => {
                let opened = UnitSharedFiles::new(unit, 0).open();
                opened.map_err(|error| error.to_string())?.1
            }
        };
        let known = units.known.entry(unit.to_owned()).or_insert_with(|| Unit::new(figures));
        known.begin()
    }

    fn end(&self, unit: &str) {
        let mut units = self.units();
        let Some(known) = units.known.get_mut(unit) else {
            return;
        };
        known.served = known.served.saturating_sub(1);
        if known.served == 0 && unit.ends_with(UNIT_SUFFIX) {
            let spare = (unit.to_owned(), known.figures);
            units.known.remove(unit);
            units.spare.push(spare);
        }
    }

    fn units(&self) -> MutexGuard<'_, Units> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, figures: &'static RunFigures) -> NotifierWork {
        NotifierWork {
            arena: self.arena,
            figures,
            settings: CallSettings { policy: GatePolicy::Auto, longest_wait_ns: LONGEST_WAIT_NS },
            count_only: Vec::new(),
        }
    }
}
