//! Settings for a client and batch.

use super::scenario::Scenario;
use crate::settings::{COST_MEASURED, PEAK_BYTES_PER_SECOND, READ_AHEAD_KIB};

/// Larger read-ahead that is tried if the batch reads.
const LARGER_READ_AHEAD_KIB: [u64; 4] = [256, 512, 1024, 2048];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientSetting {
    pub(super) name: String,
    scheduler: &'static str,
    read_ahead_kib: u64,
    /// Settings of the scheduler, `name=value`, separated by blanks.
    queue: &'static str,
    /// File of the client's cgroup and its content, `name=content`.
    client_io: &'static str,
    /// File of each batch task's cgroup and its content, `name=content`.
    batch_io: String,
    /// Content of `io.cost.qos`, and after a `;` of `io.cost.model`.
    cost: &'static str,
    /// Options of `luc throttle run`; empty without it.
    throttle: String,
}

impl ClientSetting {
    fn of(scheduler: &'static str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scheduler,
            read_ahead_kib: READ_AHEAD_KIB,
            queue: "",
            client_io: "",
            batch_io: String::new(),
            cost: "",
            throttle: String::new(),
        }
    }

    fn reading_ahead(&self, read_ahead_kib: u64) -> Self {
        Self {
            name: format!("{}, read-ahead {read_ahead_kib} KiB", self.name),
            read_ahead_kib,
            ..self.clone()
        }
    }

    /// Returns the words of `beside` in `protect.sh` after its name and the number of batch tasks.
    pub(super) fn words(&self) -> String {
        format!(
            "{} {} '{}' '{}' '{}' '{}' '{}'",
            self.scheduler,
            self.read_ahead_kib,
            self.queue,
            self.client_io,
            self.batch_io,
            self.cost,
            self.throttle
        )
    }
}

/// No scheduler, and the kernel's own read-ahead.
pub(super) fn plain() -> ClientSetting {
    ClientSetting::of("none", "none")
}

/// BFQ with a group for each task, and weights of client and batch if they differ.
fn bfq(is_low_latency: bool, is_weighted: bool) -> ClientSetting {
    let (queue, latency) = if is_low_latency { ("low_latency=1", 1) } else { ("low_latency=0", 0) };
    let (weights, client_io, batch_io) = if is_weighted {
        ("weights 1000 : 1", "io.bfq.weight=1000", "io.bfq.weight=1")
    } else {
        ("equal weights", "", "")
    };
    ClientSetting {
        queue,
        client_io,
        batch_io: batch_io.to_owned(),
        ..ClientSetting::of("bfq", &format!("BFQ, low_latency {latency}, {weights}"))
    }
}

/// Returns all rivals of a scenario.
pub(super) fn rivals(scenario: Scenario) -> Vec<ClientSetting> {
    let deadline = ClientSetting::of("mq-deadline", "mq-deadline");
    let mut all = vec![
        plain(),
        deadline.clone(),
        bfq(false, false),
        bfq(true, false),
        bfq(false, true),
        bfq(true, true),
        ClientSetting {
            client_io: "io.weight=10000",
            batch_io: "io.weight=1".to_owned(),
            cost: COST_MEASURED,
            ..ClientSetting::of("none", "iocost, weights 10000 : 1")
        },
    ];
    // The batch's equal share, and less: what is not given to it is the client's.
    for part in [4, 20, 100] {
        let rate = PEAK_BYTES_PER_SECOND / part;
        all.push(ClientSetting {
            batch_io: format!("io.max=rbps={rate} wbps={rate}"),
            ..ClientSetting::of(
                "none",
                &format!("io.max, 1/{part} of the peak for each of the batch"),
            )
        });
    }
    if scenario == Scenario::Reads {
        let tuned = [plain(), deadline, bfq(false, false), bfq(false, true)];
        for of in tuned {
            all.extend(LARGER_READ_AHEAD_KIB.map(|kib| of.reading_ahead(kib)));
        }
    }
    all
}

/// Returns the settings of `luc throttle`: the default, one as if the client were alone, and some that hold a 99th
/// percentile.
///
/// They are on mq-deadline, the default of a disk with one queue, and on others for comparison. Without an elevator,
/// a disk that takes one request at a time makes submitters wait for a place. Nobody can see that wait.
pub(super) fn ours(scenario: Scenario) -> Vec<ClientSetting> {
    let throttle = |name: &str, options: &str| ClientSetting {
        throttle: format!("--policy auto {options}"),
        ..ClientSetting::of("mq-deadline", &format!("luc throttle, {name}"))
    };
    let held = |ms: u64| throttle(&format!("p99 {ms} ms"), &format!("--p99 {ms}ms"));
    let strict = throttle(STRICT, "--batch-floor 0");
    let mut all = vec![throttle("default", ""), strict.clone()];
    match scenario {
        Scenario::Reads => {
            all.extend([20, 25, 30, 40, 60].map(held));
            all.extend([256, 512].map(|kib| held(30).reading_ahead(kib)));
            all.extend([256, 512, 1024].map(|kib| held(60).reading_ahead(kib)));
        }
        Scenario::Fsyncs => all.extend([50, 75, 100, 200].map(held)),
    }
    for scheduler in ["none", "bfq"] {
        all.push(on(scheduler, &strict));
        all.push(on(scheduler, &held(30)));
    }
    all
}

/// Name of the setting that should be as if the client were alone.
const STRICT: &str = "batch_floor 0";

fn on(scheduler: &'static str, setting: &ClientSetting) -> ClientSetting {
    ClientSetting {
        name: format!("{}, on {scheduler}", setting.name),
        scheduler,
        ..setting.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_setting_has_a_name_of_its_own() {
        for scenario in [Scenario::Reads, Scenario::Fsyncs] {
            let (rivals, ours) = (rivals(scenario), ours(scenario));
            assert!(ours.iter().all(|setting| !setting.throttle.is_empty()));
            assert!(rivals.iter().all(|setting| setting.throttle.is_empty()));
            let names: HashSet<&str> =
                rivals.iter().chain(&ours).map(|setting| setting.name.as_str()).collect();
            assert_eq!(names.len(), rivals.len() + ours.len());
        }
    }

    #[test]
    fn words_are_quoted() {
        let words = bfq(false, true).words();
        let wanted = "bfq 128 'low_latency=0' 'io.bfq.weight=1000' 'io.bfq.weight=1' '' ''";
        assert_eq!(words, wanted);
    }
}
