//! The table of all parts of the evaluation.

use luc_evaluate_fleet as fleet;
use luc_evaluate_fleet_clocks as fleet_clocks;
use luc_evaluate_throttle as throttle;

use crate::harness::Harness;
use crate::plans::{Planned, planned};
use crate::{
    EvaluateError, coverage, criterion, kills, runner, services, sigkill, sweep_kills, truth,
};

#[derive(Debug, Clone, Copy)]
pub struct Part {
    name: &'static str,
    about: &'static str,
    pub(super) made: Made,
}

/// Way in which a part is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Made {
    /// Measured on this machine, as root. The harness keeps the runs, of which `prove/parts/NAME.toml` makes the page.
    Here {
        measure: fn(&Harness) -> Result<(), EvaluateError>,
        page: &'static str,
        /// A page whose prelude, claims and tables come before its own, if there is one.
        like: &'static [&'static str],
    },
    /// A sweep, and claims about it.
    Planned(Planned),
    /// A paper's claims, judged by the raw data of other parts.
    Judged { paper: &'static str, page: &'static str },
}

use Made::Planned as ByPlan;

/// All parts, in the order in which they run.
#[rustfmt::skip]
pub const PARTS: [Part; 63] = [
    part("metarates", "File creation, with and without the gate", ByPlan(planned!("metarates"))),
    part("varmail", "The mail server on a hard disk", ByPlan(planned!("varmail"))),
    part("head-to-head", "ext4, fast commits and XFS, each with and without the gate", ByPlan(planned!("head-to-head"))),
    part("no-harm", "Where the gate cannot help it must not harm", ByPlan(planned!("no-harm"))),
    measured!("call-cost", "What a call costs while the gate stands aside"),
    part("gains", "Overwritten, preallocated and growing logs, deletions, and each policy, beside their limits", ByPlan(planned!("gains"))),
    measured!("notifier", "Static programs and Go programs, notified, beside the library"),
    part("short", "Programs of 2 s beside those of 20 s", ByPlan(planned!("short"))),
    measured!("services", "Services of the distribution, unchanged"),
    measured!("services-kernel", "Services with luc.ko in a guest, in virtual time", by services::guest::with_module),
    measured!("services-guest", "Services under luc run in a guest, in virtual time", by services::guest::under_luc),
    measured!("powercut", "Power cuts under the gate"),
    measured!("rival-powercut", "Power cuts of fast commits and XFS beside ext4", like "powercut"),
    measured!("notifier-powercut", "Power cuts under the notifier", like "powercut"),
    measured!("notifier-sigkill", "Supervisors, keepers and programs killed under the notifier", by sigkill::notified::run),
    measured!("faults", "Failed writes under the gate"),
    measured!("sigkill", "Workers killed at random under the gate", by sigkill::run),
    part("sqlite", "Eight SQLite writers", ByPlan(planned!("sqlite"))),
    measured!("prediction", "What batching would gain, predicted and obtained"),
    measured!("truth", "Planted troubles, and what is said of them", by truth::run),
    measured!("recording", "What recording costs"),
    measured!("analysis", "How fast traces are explained, and in how much memory"),
    measured!("personalities", "Filebench's personalities beside their parameters"),
    measured!("engine", "The engine of Filebench's files beside loops and fio"),
    measured!("sweep-kills", "A sweep that is killed", by sweep_kills::run),
    measured!("kills", "Whatever is killed, the next command puts back", by kills::run),
    measured!("packages", "Packages in a fresh root, and a first user's minutes"),
    measured!("throttle", "Tasks that ruin each other's disk, in virtual time", by throttle::run),
    measured!("throttle-host", "The same on the running kernel, in real time", by throttle::host::run, like "throttle"),
    measured!("throttle-advise", "What luc throttle advise predicts, and what comes", by throttle::advised::run),
    measured!("throttle-paper", "WiseThrottling's experiments and rules, beside its figures", by throttle::paper::run),
    measured!("throttle-protect", "A client that must be answered soon, beside batch, in virtual time", by throttle::protect::run),
    measured!("throttle-safety", "A throttle that is killed, and what it costs", by throttle::safety::run),
    measured!("throttle-inversions", "How long somebody waits for what a frozen task has", by throttle::safety::inversions::run),
    measured!("throttle-soak", "A throttle among services that come, go and are killed, for two hours", by throttle::safety::soak::run),
    measured!("coverage", "Whether intervals cover", by coverage::run),
    measured!("criterion", "How often \"not slower\" is met by what is slower", by criterion::run),
    measured!("fleet-clocks", "Clocks of hosts related by their messages, simulated", by fleet_clocks::simulated::run),
    measured!("fleet-guests", "Clocks of real kernels in guests whose rates change, by hand and by NTP", by fleet_clocks::guests::run),
    measured!("fleet-cost", "What recording the network costs servers and their clients", by fleet::cost::run),
    measured!("fleet-counters", "Hardware counters that take turns, by a model", by fleet::counters::run),
    measured!("fleet-truth", "A search service with planted troubles, and what luc fleet says of it", by fleet::truth::run),
    measured!("fleet-pools", "Requests handed over inside servers, and what luc fleet says of them"),
    measured!("fleet-solr", "A search service of Solr, and what luc fleet says of it", by fleet::solr::run),
    measured!("fleet-known", "Functions of threads, holders of locks, and times that close", by fleet::known::run),
    measured!("fleet-unix", "Requests over unix sockets, and what luc fleet says of them"),
    measured!("fleet-scale", "How long luc fleet explain takes for many hosts, and trees of many nodes"),
    measured!("arm64", "The recorder and the gate on 64-bit Arm, in an emulated machine", by fleet::arm64::run),
    measured!("kernel-powercut", "Power cuts with luc.ko"),
    measured!("kernels", "Kernels of several distributions, from 6.1 to 7.3"),
    measured!("kernel-cycles", "luc.ko loaded and unloaded under load"),
    measured!("kernel-stress", "Stress of file systems with luc.ko"),
    part("kernel", "The kernel module by processor speed, in virtual time", ByPlan(planned!("kernel"))),
    part("thesis", "The thesis' figures as one sweep in virtual time", ByPlan(planned!("thesis"))),
    part("thesis-metarates", "The thesis' Metarates with four processors and clients that arrive one after another", ByPlan(planned!("thesis-metarates"))),
    part("thesis-processors", "The thesis' IOzone, varMail and oltp with four processors and clients that arrive spread", ByPlan(planned!("thesis-processors"))),
    part("thesis-holds", "The thesis' IOzone with holds of up to 50 ms, with luc.ko, in virtual time", ByPlan(planned!("thesis-holds"))),
    part("thesis-seeks", "The thesis' Metarates on a disk that seeks, with luc.ko, in virtual time", ByPlan(planned!("thesis-seeks"))),
    part("thesis-claims", "The thesis' claims, judged by the raw data of the parts before and of kernel", Made::Judged { paper: include_str!("../../parts/papers/thesis.toml"), page: include_str!("../../parts/thesis-claims.toml") }),
    part("arrivals", "When a faster processor makes fsyncs slower, and whether luc.ko cures it, in virtual time", ByPlan(planned!("arrivals"))),
    part("arrivals-write", "A faster processor that makes initial writes slower, with more rounds, in virtual time", ByPlan(planned!("arrivals-write"))),
    part("matrix", "The energy slides' selection matrix, in virtual time", ByPlan(planned!("matrix"))),
    part("matrix-processors", "The energy slides' selection matrix with one and with four processors", ByPlan(planned!("matrix-processors"))),
];

/// A part that `prove/parts/NAME.toml` shows. That file's section `[run]` says how it is measured, or else a function.
macro_rules! measured {
    ($name:literal, $about:literal $(, like $like:literal)?) => {
        measured!($name, $about, by runner::run $(, like $like)?)
    };
    ($name:literal, $about:literal, by $measure:path $(, like $like:literal)?) => {
        part(
            $name,
            $about,
            Made::Here {
                measure: $measure,
                page: include_str!(concat!("../../parts/", $name, ".toml")),
                like: &[$(include_str!(concat!("../../parts/", $like, ".toml")))?],
            },
        )
    };
}
use measured;

const fn part(name: &'static str, about: &'static str, made: Made) -> Part {
    Part { name, about, made }
}

impl Part {
    /// Name of its files, and of its target `make evaluate-NAME`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the part of a name.
    ///
    /// # Errors
    /// The names that there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = PARTS.into_iter().find(|part| part.name == name);
        found.ok_or_else(|| format!("the parts are {}", PARTS.map(|part| part.name).join(", ")))
    }

    /// Lists all parts with their descriptions, a line each, for a help text.
    #[must_use]
    pub fn list() -> String {
        let lines = PARTS.map(|Part { name, about, .. }| format!("  {name:<21}{about}"));
        format!("Parts:\n{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_part_is_found_by_its_own_name() {
        let names: HashSet<&str> = PARTS.iter().map(Part::name).collect();
        assert_eq!(names.len(), PARTS.len());
        for name in names {
            assert_eq!(Part::named(name).map(|part| part.name), Ok(name));
        }
        assert!(Part::named("nonsense").is_err_and(|text| text.contains("metarates, varmail")));
    }
}
