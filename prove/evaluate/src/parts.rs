//! The table of all parts of the evaluation.

use luc_evaluate_fleet as fleet;
use luc_evaluate_fleet_clocks as fleet_clocks;
use luc_evaluate_throttle as throttle;
use luc_harness::report::Page;

use crate::harness::Harness;
use crate::plans::{Planned, planned};
use crate::{
    EvaluateError, analysis, call_cost, coverage, engine, faults, kernels, kills, notifier,
    packages, personalities, powercut, prediction, recording, safety, services, sigkill,
    sweep_kills, truth,
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
    /// Measured on this machine, as root. The harness keeps the runs.
    Here(fn(&Harness) -> Result<Page, EvaluateError>),
    /// A sweep, and claims about it.
    Planned(Planned),
}

use Made::{Here, Planned as ByPlan};

/// All parts, in the order in which they run.
#[rustfmt::skip]
pub const PARTS: [Part; 61] = [
    part("metarates", "File creation, with and without the gate", ByPlan(planned!("metarates"))),
    part("varmail", "The mail server on a hard disk", ByPlan(planned!("varmail"))),
    part("head-to-head", "ext4, fast commits and XFS, each with and without the gate", ByPlan(planned!("head-to-head"))),
    part("no-harm", "Where the gate cannot help it must not harm", ByPlan(planned!("no-harm"))),
    part("call-cost", "What a call costs while the gate stands aside", Here(call_cost::run)),
    part("gains", "Overwritten, preallocated and growing logs, deletions, and each policy, beside their limits", ByPlan(planned!("gains"))),
    part("notifier", "Static programs and Go programs, notified, beside the library", Here(notifier::run)),
    part("short", "Programs of 2 s beside those of 20 s", ByPlan(planned!("short"))),
    part("services", "Services of the distribution, unchanged", Here(services::run)),
    part("services-kernel", "Services with luc.ko in a guest, in virtual time", Here(services::guest::with_module)),
    part("services-guest", "Services under luc run in a guest, in virtual time", Here(services::guest::under_luc)),
    part("powercut", "Power cuts under the gate", Here(powercut::run)),
    part("rival-powercut", "Power cuts of fast commits and XFS beside ext4", Here(powercut::rivals::run)),
    part("notifier-powercut", "Power cuts under the notifier", Here(powercut::notified::run)),
    part("notifier-sigkill", "Supervisors, keepers and programs killed under the notifier", Here(sigkill::notified::run)),
    part("faults", "Failed writes under the gate", Here(faults::run)),
    part("sigkill", "Workers killed at random under the gate", Here(sigkill::run)),
    part("sqlite", "Eight SQLite writers", ByPlan(planned!("sqlite"))),
    part("prediction", "What batching would gain, predicted and obtained", Here(prediction::run)),
    part("truth", "Planted troubles, and what is said of them", Here(truth::run)),
    part("recording", "What recording costs", Here(recording::run)),
    part("analysis", "How fast traces are explained, and in how much memory", Here(analysis::run)),
    part("personalities", "Filebench's personalities beside their parameters", Here(personalities::run)),
    part("engine", "The engine of Filebench's files beside loops and fio", Here(engine::run)),
    part("sweep-kills", "A sweep that is killed", Here(sweep_kills::run)),
    part("kills", "Whatever is killed, the next command puts back", Here(kills::run)),
    part("packages", "Packages in a fresh root, and a first user's minutes", Here(packages::run)),
    part("throttle", "Tasks that ruin each other's disk, in virtual time", Here(throttle::run)),
    part("throttle-host", "The same on the running kernel, in real time", Here(throttle::host::run)),
    part("throttle-advise", "What luc throttle advise predicts, and what comes", Here(throttle::advised::run)),
    part("throttle-paper", "WiseThrottling's experiments and rules, beside its figures", Here(throttle::paper::run)),
    part("throttle-protect", "A client that must be answered soon, beside batch, in virtual time", Here(throttle::protect::run)),
    part("throttle-safety", "A throttle that is killed, and what it costs", Here(throttle::safety::run)),
    part("throttle-inversions", "How long somebody waits for what a frozen task has", Here(throttle::safety::inversions::run)),
    part("throttle-soak", "A throttle among services that come, go and are killed, for two hours", Here(throttle::safety::soak::run)),
    part("coverage", "Whether intervals cover", Here(coverage::run)),
    part("fleet-clocks", "Clocks of hosts related by their messages, simulated", Here(fleet_clocks::simulated::run)),
    part("fleet-guests", "Clocks of real kernels in guests whose rates change, by hand and by NTP", Here(fleet_clocks::guests::run)),
    part("fleet-cost", "What recording the network costs servers and their clients", Here(fleet::cost::run)),
    part("fleet-counters", "Hardware counters that take turns, by a model", Here(fleet::counters::run)),
    part("fleet-truth", "A search service with planted troubles, and what luc fleet says of it", Here(fleet::truth::run)),
    part("fleet-pools", "Requests handed over inside servers, and what luc fleet says of them", Here(fleet::pools::run)),
    part("fleet-solr", "A search service of Solr, and what luc fleet says of it", Here(fleet::solr::run)),
    part("fleet-known", "Functions of threads, holders of locks, and times that close", Here(fleet::known::run)),
    part("fleet-unix", "Requests over unix sockets, and what luc fleet says of them", Here(fleet::unix::run)),
    part("fleet-scale", "How long luc fleet explain takes for many hosts, and trees of many nodes", Here(fleet::scale::run)),
    part("arm64", "The recorder and the gate on 64-bit Arm, in an emulated machine", Here(fleet::arm64::run)),
    part("kernel-powercut", "Power cuts with luc.ko", Here(safety::powercut::run)),
    part("kernels", "Kernels of several distributions, from 6.1 to 7.3", Here(kernels::run)),
    part("kernel-cycles", "luc.ko loaded and unloaded under load", Here(safety::cycles::run)),
    part("kernel-stress", "Stress of file systems with luc.ko", Here(safety::stress::run)),
    part("kernel", "The kernel module by processor speed, in virtual time", ByPlan(planned!("kernel"))),
    part("thesis", "The thesis' figures as one sweep in virtual time", ByPlan(planned!("thesis"))),
    part("thesis-metarates", "The thesis' Metarates with four processors and clients that arrive one after another", ByPlan(planned!("thesis-metarates"))),
    part("thesis-processors", "The thesis' IOzone, varMail and oltp with four processors and clients that arrive spread", ByPlan(planned!("thesis-processors"))),
    part("thesis-holds", "The thesis' IOzone with holds of up to 50 ms, with luc.ko, in virtual time", ByPlan(planned!("thesis-holds"))),
    part("thesis-seeks", "The thesis' Metarates on a disk that seeks, with luc.ko, in virtual time", ByPlan(planned!("thesis-seeks"))),
    part("arrivals", "When a faster processor makes fsyncs slower, and whether luc.ko cures it, in virtual time", ByPlan(planned!("arrivals"))),
    part("arrivals-write", "A faster processor that makes initial writes slower, with more rounds, in virtual time", ByPlan(planned!("arrivals-write"))),
    part("matrix", "The energy slides' selection matrix, in virtual time", ByPlan(planned!("matrix"))),
    part("matrix-processors", "The energy slides' selection matrix with one and with four processors", ByPlan(planned!("matrix-processors"))),
];

const fn part(name: &'static str, about: &'static str, made: Made) -> Part {
    Part { name, about, made }
}

impl Part {
    /// Name of its files, and of its target `make evaluate-NAME`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the part is a plan with claims.
    #[must_use]
    pub fn is_plan(&self) -> bool {
        matches!(self.made, ByPlan(_))
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
