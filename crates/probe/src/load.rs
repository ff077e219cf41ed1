//! Loads the programs, sets their constants, attaches them.

use std::ffi::OsStr;
use std::io::Read as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{Iter, Link, Map, MapCore, MapFlags, Object, ObjectBuilder, PrintLevel, set_print};

use crate::ProbeError;
use crate::capability::Capability;
use crate::record::{Config, LOST_PLACES, Plain};

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o"));

/// Programs that go through all threads: one before recording, one after.
pub(crate) const BEGIN: &str = "begin";
pub(crate) const END: &str = "end";

/// The loaded programs. Nothing is pinned: when the process ends, the kernel takes all of it back.
#[derive(Debug)]
pub(crate) struct Programs {
    object: Object,
    hooks: Vec<&'static str>,
}

/// The programs' places on their tracepoints; dropped, they record no more.
#[derive(Debug, Default)]
pub(crate) struct Links {
    always: Vec<Link>,
    /// Of the programs on system calls, which are there only while they are worth it.
    calls: Vec<Link>,
}

/// The programs on system calls.
const CALLS: [&str; 2] = ["sys_enter", "sys_exit"];

/// libbpf's messages since the last [`forget_messages`].
static MESSAGES: Mutex<String> = Mutex::new(String::new());

fn keep_message(_level: PrintLevel, text: String) {
    // "failed to load object" and the like only repeat the first line, which says why.
    let mut messages = messages();
    if messages.len() < 4096 {
        messages.push_str(&text);
    }
}

fn messages() -> MutexGuard<'static, String> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What libbpf said of an earlier recording is not why this one fails.
fn forget_messages() {
    messages().clear();
}

/// The first of libbpf's messages, which say why, in one line.
fn reason(error: &libbpf_rs::Error) -> String {
    let messages = messages();
    let first: Vec<&str> = messages
        .lines()
        .filter_map(|line| line.strip_prefix("libbpf: "))
        .take(2)
        .collect();
    if first.is_empty() {
        return error.to_string();
    }
    format!("{error} ({})", first.join("; "))
}

impl Programs {
    /// Loads the programs that `capability` allows.
    pub(crate) fn load(
        capability: &Capability,
        config: &Config,
        ring_bytes: u32,
        calls: bool,
        roots: &[u32],
    ) -> Result<Self, ProbeError> {
        forget_messages();
        set_print(Some((PrintLevel::Warn, keep_message)));
        let mut open = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(ProbeError::refused("its own programs"))?;
        let hooks: Vec<&'static str> = capability
            .hooks
            .iter()
            .filter(|hook| calls || !CALLS.contains(&hook.name))
            .filter(|hook| config.summary == 0 || hook.name != "sched_waking")
            .map(|hook| hook.name)
            .collect();
        for mut program in open.progs_mut() {
            let name = program.name().to_os_string();
            let wanted =
                name == BEGIN || name == END || hooks.iter().any(|hook| OsStr::new(hook) == name);
            program.set_autoload(wanted);
        }
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == ".rodata.config" {
                map.set_initial_value(config.bytes())
                    .map_err(ProbeError::refused("the programs' constants"))?;
            } else if name == "records" {
                map.set_max_entries(ring_bytes)
                    .map_err(ProbeError::refused("the size of the buffer"))?;
            } else if name == "hots" {
                map.set_max_entries(config.hot_mask + 1)
                    .map_err(ProbeError::refused("the number of threads"))?;
            }
        }
        let object = open.load().map_err(|error| ProbeError::Refused {
            what: "the recorder's programs".to_owned(),
            reason: reason(&error),
        })?;
        let programs = Self { object, hooks };
        for root in roots {
            programs
                .map("roots")?
                .update(&root.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(ProbeError::refused("the processes to be recorded"))?;
        }
        Ok(programs)
    }

    /// The map of this name.
    pub(crate) fn map(&self, name: &'static str) -> Result<Map<'_>, ProbeError> {
        self.object
            .maps()
            .find(|map| map.name() == OsStr::new(name))
            .ok_or_else(|| ProbeError::Refused {
                what: format!("map {name}"),
                reason: "it is not in the programs".to_owned(),
            })
    }

    /// Begins to record: who exists is looked at after births are seen, so that nobody is missed.
    pub(crate) fn attach(&self) -> Result<Links, ProbeError> {
        let birth = |name: &str| name.starts_with("sched_process");
        let mut links = Links {
            always: self.attach_those(birth)?,
            calls: Vec::new(),
        };
        self.visit_threads(BEGIN)?;
        let others = self.attach_those(|name| !birth(name) && !CALLS.contains(&name))?;
        links.always.extend(others);
        self.attach_calls(&mut links)?;
        Ok(links)
    }

    /// Begins to look at system calls, if that is wanted at all.
    pub(crate) fn attach_calls(&self, links: &mut Links) -> Result<(), ProbeError> {
        links.calls = self.attach_those(|name| CALLS.contains(&name))?;
        self.tell_calls_attached(!links.calls.is_empty())
    }

    /// Ends looking at them. Those in progress are told first, as they will not see their end.
    pub(crate) fn detach_calls(&self, links: &mut Links) -> Result<(), ProbeError> {
        self.tell_calls_attached(false)?;
        links.calls.clear();
        Ok(())
    }

    fn tell_calls_attached(&self, attached: bool) -> Result<(), ProbeError> {
        self.map(".data.calls")?
            .update(
                &0u32.to_ne_bytes(),
                &u32::from(attached).to_ne_bytes(),
                MapFlags::ANY,
            )
            .map_err(ProbeError::refused("changing what is looked at"))
    }

    /// A number that changes when recorded threads use files.
    pub(crate) fn file_activity(&self) -> Result<u32, ProbeError> {
        self.variable(".data.activity")
    }

    /// How many entries the maps of sums have got since loading (wraps around).
    pub(crate) fn inserted(&self) -> Result<u32, ProbeError> {
        self.variable(".data.inserted")
    }

    fn variable(&self, section: &'static str) -> Result<u32, ProbeError> {
        let mut bytes = [0; 4];
        self.map(section)?
            .lookup_into(&0u32.to_ne_bytes(), &mut bytes, MapFlags::ANY)
            .map_err(ProbeError::refused("reading its maps"))?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn attach_those(&self, which: impl Fn(&str) -> bool) -> Result<Vec<Link>, ProbeError> {
        let mut links = Vec::new();
        for program in self.object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if !which(&name) || !self.hooks.contains(&name.as_str()) {
                continue;
            }
            let link = program
                .attach_trace()
                .map_err(ProbeError::refused(format!("the tracepoint {name}")))?;
            links.push(link);
        }
        Ok(links)
    }

    /// Runs one of the programs that go through all threads.
    pub(crate) fn visit_threads(&self, name: &str) -> Result<(), ProbeError> {
        let refused = || ProbeError::refused("going through all threads");
        for program in self.object.progs_mut() {
            if program.name() == OsStr::new(name) {
                let link = program.attach().map_err(refused())?;
                let mut iterator = Iter::new(&link).map_err(refused())?;
                let mut output = Vec::new();
                iterator
                    .read_to_end(&mut output)
                    .map_err(ProbeError::system("go through", "all threads"))?;
            }
        }
        Ok(())
    }

    /// How much was lost since loading, by place.
    pub(crate) fn lost(&self) -> Result<[u64; LOST_PLACES.len()], ProbeError> {
        let map = self.map("lost")?;
        let mut counts = [0; LOST_PLACES.len()];
        for (place, count) in counts.iter_mut().enumerate() {
            let per_processor = map
                .lookup_percpu(&(place as u32).to_ne_bytes(), MapFlags::ANY)
                .map_err(ProbeError::refused("reading what was lost"))?
                .unwrap_or_default();
            *count = per_processor
                .iter()
                .filter_map(|bytes| bytes.as_slice().try_into().ok().map(u64::from_ne_bytes))
                .sum();
        }
        Ok(counts)
    }
}
