//! Services: processes that run the same program below one ancestor, with one name.

use std::collections::{BTreeSet, HashMap};

/// Maximum number of ports that a name has.
const MAX_NAMED_PORTS: usize = 2;
/// Maximum length of a port or path in a name.
const MAX_PORT_CHARS: usize = 30;
/// Maximum number of ancestors that run the same program. More are of forged rows.
const MAX_ANCESTORS: usize = 64;

/// Facts about a process from which its service follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Number of the process, unique in its trace.
    pub process: u32,
    /// Number of its parent, if known.
    pub parent: Option<u32>,
    /// Name of its first thread.
    pub comm: String,
    /// File of its program; empty if unknown.
    pub program: String,
    /// Script that an interpreter runs; empty for other programs.
    pub script: String,
    /// Ports and paths at which it was connected to.
    pub ports: BTreeSet<String>,
}

/// Services of the processes of one trace.
#[derive(Debug, Clone, Default)]
pub struct ServiceNames {
    of_processes: HashMap<u32, String>,
}

impl ServiceNames {
    /// Names the service of each process: the program and script of the oldest ancestor that runs the same, and the
    /// ports of all processes below it.
    #[must_use]
    pub fn of(processes: &[ProcessFacts]) -> Self {
        let facts: HashMap<u32, &ProcessFacts> =
            processes.iter().map(|facts| (facts.process, facts)).collect();
        let mut ports: HashMap<u32, BTreeSet<&str>> = HashMap::new();
        let founders: Vec<u32> = processes.iter().map(|process| founder(process, &facts)).collect();
        for (process, founder) in processes.iter().zip(&founders) {
            let of_service = process.ports.iter().map(String::as_str);
            let short = of_service.filter(|port| port.chars().count() < MAX_PORT_CHARS);
            ports.entry(*founder).or_default().extend(short);
        }
        let of_processes = processes.iter().zip(&founders).filter_map(|(process, founder)| {
            let facts = facts.get(founder)?;
            let none = BTreeSet::new();
            let name = service_name(facts, ports.get(founder).unwrap_or(&none));
            Some((process.process, name))
        });
        Self { of_processes: of_processes.collect() }
    }

    /// Returns the service of a process, if it is known.
    #[must_use]
    pub fn service(&self, process: u32) -> Option<&str> {
        self.of_processes.get(&process).map(String::as_str)
    }
}

/// Finds the oldest ancestor that runs the same program and script.
fn founder<'p>(process: &'p ProcessFacts, facts: &HashMap<u32, &'p ProcessFacts>) -> u32 {
    let mut oldest = process;
    for _ in 0..MAX_ANCESTORS {
        let parent = oldest.parent.and_then(|parent| facts.get(&parent).copied());
        let is_same = |parent: &&ProcessFacts| {
            !parent.program.is_empty()
                && parent.program == process.program
                && parent.script == process.script
                && parent.process != oldest.process
        };
        match parent.filter(is_same) {
            Some(parent) => oldest = parent,
            None => break,
        }
    }
    oldest.process
}

fn service_name(founder: &ProcessFacts, ports: &BTreeSet<&str>) -> String {
    // A package was updated while it ran.
    let program = founder.program.trim_end_matches(" (deleted)");
    let program = last_of_path(program);
    let mut name = match (program, founder.comm.as_str()) {
        ("", "") => format!("process {}", founder.process),
        ("", comm) => comm.to_owned(),
        (program, _) => program.to_owned(),
    };
    if !founder.script.is_empty() {
        name += &format!(" {}", last_of_path(&founder.script));
    }
    let named: Vec<&str> = ports.iter().take(MAX_NAMED_PORTS).copied().collect();
    if !named.is_empty() {
        name += &format!(":{}", named.join(","));
    }
    name
}

fn last_of_path(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns a thread's name without the numbers of a pool. A name that is only a number stays.
#[must_use]
pub fn thread_class(name: &str) -> &str {
    let is_number = |c: char| c.is_ascii_digit() || " -_:#/.".contains(c);
    match name.trim_end_matches(is_number) {
        "" => name,
        class => class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(process: u32, parent: u32, program: &str, ports: &[&str]) -> ProcessFacts {
        ProcessFacts {
            process,
            parent: Some(parent),
            comm: "comm".to_owned(),
            program: program.to_owned(),
            script: String::new(),
            ports: ports.iter().map(|&port| port.to_owned()).collect(),
        }
    }

    #[test]
    fn backends_of_a_server_are_one_service() {
        let processes = [
            process(10, 1, "/usr/bin/postgres", &[]),
            process(11, 10, "/usr/bin/postgres", &["5432"]),
            process(12, 10, "/usr/bin/postgres", &["5432"]),
            process(20, 1, "/usr/bin/psql", &[]),
            process(30, 20, "", &[]),
            process(40, 1, "/usr/sbin/nginx (deleted)", &[]),
        ];
        let services = ServiceNames::of(&processes);
        let name = |process| services.service(process);
        assert_eq!(name(10), Some("postgres:5432"));
        assert_eq!(name(12), Some("postgres:5432"));
        assert_eq!(name(20), Some("psql"));
        assert_eq!(name(40), Some("nginx"));
        assert_eq!(name(30), Some("comm"));
        assert_eq!(name(99), None);
    }

    #[test]
    fn scripts_of_one_interpreter_are_several_services() {
        let run = |process_id, script: &str| ProcessFacts {
            script: script.to_owned(),
            ..process(process_id, 1, "/usr/bin/python3", &[])
        };
        let services = ServiceNames::of(&[run(1, "/srv/a.py"), run(2, "b.py")]);
        assert_eq!(services.service(1), Some("python3 a.py"));
        assert_eq!(services.service(2), Some("python3 b.py"));
    }

    #[test]
    fn ancestors_in_a_circle_end() {
        let circle = [process(1, 2, "/bin/a", &[]), process(2, 1, "/bin/a", &[])];
        let services = ServiceNames::of(&circle);
        assert!(services.service(1).is_some() && services.service(2).is_some());
    }

    #[test]
    fn a_pool_has_one_name() {
        assert_eq!(thread_class("worker-12"), "worker");
        assert_eq!(thread_class("pool-1-thread-7"), "pool-1-thread");
        assert_eq!(thread_class("42"), "42");
    }
}
