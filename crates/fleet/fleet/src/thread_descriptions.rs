//! Describes threads by their start routines, and processes by the scripts that they interpret.

use std::collections::HashMap;

use luc_events::tables::{ProcessProgram, ThreadStart};
use luc_units::plain;

/// Ends of the names of generic start routines, which do not tell threads apart.
const GENERIC_ROUTINES: &[&str] = &[
    // C++ (libstdc++), Rust, Java, Python, Go.
    "execute_native_thread_routine",
    "::thread_start",
    "thread_native_entry",
    "pythread_wrapper",
    "threadentry",
];

/// Start routines and scripts of one host.
#[derive(Debug, Default)]
pub(crate) struct ThreadDescriptions {
    /// Start routine by a thread's id and start.
    routines: HashMap<(u32, u64), String>,
    /// Scripts by process, each with the time from which the process runs it.
    scripts: HashMap<u32, Vec<(u64, String)>>,
}

impl ThreadDescriptions {
    /// Reads rows that are in order of time.
    pub(crate) fn new(starts: &[ThreadStart], programs: &[ProcessProgram]) -> Self {
        let mut brands = Self::default();
        for row in starts {
            if let Some(name) = describe_routine(row) {
                brands.routines.insert((row.thread.0, row.start_ns), name);
            }
        }
        for row in programs {
            let scripts = brands.scripts.entry(row.process.0).or_default();
            scripts.push((row.at_ns, plain(strip_folder(&row.script))));
        }
        brands
    }

    /// Start routine of a thread; `None`: unknown, or generic.
    pub(crate) fn routine(&self, thread: u32, start_ns: u64) -> Option<&str> {
        self.routines.get(&(thread, start_ns)).map(String::as_str)
    }

    /// Script that a process interprets at a time, without its path.
    pub(crate) fn script(&self, process: u32, at_ns: u64) -> Option<&str> {
        let scripts = self.scripts.get(&process)?;
        // A process has its first row a little after its start.
        let next = scripts.partition_point(|(since_ns, _)| *since_ns <= at_ns);
        let (_, script) = scripts.get(next.saturating_sub(1))?;
        (!script.is_empty()).then_some(script)
    }
}

fn describe_routine(row: &ThreadStart) -> Option<String> {
    let name = row.routine.as_str();
    if name.is_empty() || GENERIC_ROUTINES.iter().any(|generic| name.ends_with(generic)) {
        return None;
    }
    let is_place = name.starts_with('+');
    let file = strip_folder(&row.module);
    Some(plain(&if is_place { format!("{file}{name}") } else { name.to_owned() }))
}

fn strip_folder(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use luc_events::{Pid, Tgid};

    use super::*;

    fn start(thread: u32, routine: &str) -> ThreadStart {
        ThreadStart {
            thread: Pid(thread),
            start_ns: 5,
            routine: routine.to_owned(),
            module: "/usr/sbin/served".to_owned(),
            ..ThreadStart::default()
        }
    }

    #[test]
    fn a_function_that_begins_any_thread_says_nothing() {
        let brands = ThreadDescriptions::new(
            &[
                start(1, "flusher"),
                start(2, "+0x1f0"),
                start(3, "std::sys::thread::unix::Thread::new::thread_start"),
                start(4, ""),
                start(5, "evil\u{1b}[31m"),
            ],
            &[],
        );
        let routine = |thread| brands.routine(thread, 5);
        assert_eq!(routine(1), Some("flusher"));
        assert_eq!(routine(2), Some("served+0x1f0"));
        assert_eq!((routine(3), routine(4)), (None, None));
        assert!(!routine(5).expect("a name").contains('\u{1b}'));
        // Another thread that had the same id.
        assert_eq!(brands.routine(1, 6), None);
    }

    #[test]
    fn a_process_runs_one_script_after_the_other() {
        let program = |at_ns, script: &str| ProcessProgram {
            at_ns,
            process: Tgid(9),
            path: "/usr/bin/python3".to_owned(),
            script: script.to_owned(),
        };
        let programs = [program(10, "/srv/a.py"), program(20, "b"), program(30, "")];
        let brands = ThreadDescriptions::new(&[], &programs);
        let at = |at_ns| brands.script(9, at_ns);
        assert_eq!([at(5), at(10), at(25), at(30)], [Some("a.py"), Some("a.py"), Some("b"), None]);
        assert_eq!(brands.script(8, 10), None);
    }
}
