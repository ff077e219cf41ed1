//! The services of `prove/parts/services.toml`, for the parts that run them in guests.

use std::fs;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::runner;

/// A script's name and text.
type Script = (&'static str, &'static str);

#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) script: Script,
    /// Scripts that it sources from its folder.
    pub(super) shared: &'static [Script],
    /// Package that it is of.
    pub(super) package: &'static str,
    /// Number of servers, for the script.
    pub(super) instances: usize,
    /// Requests of each client that take about 4.5 s without luc.
    pub(super) work: f64,
    /// Mean think time of the clients, ms; 0: back to back.
    pub(super) think_ms: u32,
    /// Whether no library can be loaded into it.
    pub(super) only_notified: bool,
}

/// Way in which a service is run under luc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Under `luc run`, which chooses the library or the notifier.
    Auto,
    /// Under `luc run --reach notify`.
    Notified,
}

impl Way {
    /// Returns the ways that differ. `luc run` takes the notifier for static programs and Go programs, and the library
    /// for all others.
    pub(super) fn of(service: &Service) -> &'static [Self] {
        if service.only_notified { &[Self::Auto] } else { &[Self::Auto, Self::Notified] }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Notified => "notify",
        }
    }
}

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../subjects/services");

#[derive(Debug, Deserialize)]
struct Run {
    subject: Vec<Subject>,
}

#[derive(Debug, Deserialize)]
struct Subject {
    name: String,
    set: Settings,
}

#[derive(Debug, Deserialize)]
struct Settings {
    package: String,
    script: String,
    instances: usize,
    each_does: f64,
    #[serde(default)]
    think_ms: u32,
    #[serde(default)]
    only_notified: bool,
}

/// All services, in the order in which they run; none if the page's file is wrong.
pub(super) static SERVICES: LazyLock<Vec<Service>> = LazyLock::new(|| {
    let run: Result<Run, _> = runner::section("services");
    run.into_iter().flat_map(|run| run.subject).map(service).collect()
});

/// Makes a service of its subject. The few texts live as long as the process.
fn service(subject: Subject) -> Service {
    let script = script(&format!("{}.sh", subject.set.script));
    // A script sources others by a line that names them.
    let sourced = script
        .1
        .lines()
        .filter_map(|line| line.strip_prefix("source \"$(dirname \"$0\")/")?.strip_suffix('"'));
    Service {
        name: subject.name.leak(),
        script,
        shared: sourced.map(self::script).collect::<Vec<_>>().leak(),
        package: subject.set.package.leak(),
        instances: subject.set.instances,
        work: subject.set.each_does,
        think_ms: subject.set.think_ms,
        only_notified: subject.set.only_notified,
    }
}

fn script(name: &str) -> Script {
    let text = fs::read_to_string(format!("{SCRIPTS}/{name}")).unwrap_or_default();
    (name.to_owned().leak(), text.leak())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_prepares_and_runs_under_what_is_asked_for() {
        assert_eq!(SERVICES.len(), 14);
        for service in SERVICES.iter() {
            let text = service.script.1;
            for word in ["common.sh\"", "prepare)", "run)", "drive ", "serve "] {
                assert!(text.contains(word), "{}: {word}", service.name);
            }
            assert_eq!(text.matches("\nsource ").count(), service.shared.len(), "{}", service.name);
            assert!(service.shared.iter().all(|(_, text)| !text.is_empty()), "{}", service.name);
            // The pages' flushes per request count them, too.
            assert!(service.shared.iter().any(|(_, text)| text.contains("\nclients=8\n")));
            // Clients think only where their script knows how.
            assert!(service.think_ms == 0 || text.contains("\n\t\tthink "), "{}", service.name);
        }
    }

    #[test]
    fn the_page_has_each_service() {
        let page = include_str!("../../../parts/services.toml");
        for Service { name, package, .. } in SERVICES.iter() {
            assert!(page.contains(&format!("[\"{name}\", \"{package}\"")), "{name}");
        }
    }
}
