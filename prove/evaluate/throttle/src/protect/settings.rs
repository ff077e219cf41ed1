//! Settings for a client and batch.

use super::scenario::Scenario;
use crate::settings::{COST_MEASURED, PEAK_BYTES_PER_SECOND, READ_AHEAD_KIB};

/// Larger read-ahead that is tried if the batch reads.
const LARGER_READ_AHEAD_KIB: [u64; 3] = [256, 512, 1024];
/// Parts of the peak that `io.max` leaves each task of the batch, by read-ahead, where reads are what it moves.
///
/// The first of each binds hardly anybody: without a limit the batch does not reach it.
const READ_PARTS: [(u64, &[u64]); 4] = [
    (READ_AHEAD_KIB, &[20, 60, 80, 100, 150, 200]),
    (256, &[40, 60, 80, 100]),
    (512, &[20, 30, 40, 60, 80, 100]),
    (1024, &[12, 20, 30, 40, 60]),
];
/// The same where the batch mostly writes.
const WRITE_PARTS: [(u64, &[u64]); 2] =
    [(READ_AHEAD_KIB, &[8, 12, 20, 30, 40, 60, 80, 100, 150, 200]), (512, &[40, 60, 100])];
/// Rates of iocost, in percent of the measured model. Below 100 the disk idles, and queues are shorter.
const COST_RATES: [u64; 3] = [75, 50, 25];
/// Latency that 95 % of requests are to have. For it iocost lowers its rate, as far as a tenth.
const COST_TARGETS_MS: [u64; 2] = [20, 40];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientSetting {
    pub(super) name: String,
    scheduler: &'static str,
    read_ahead_kib: u64,
    /// Settings of the scheduler, `name=value`, separated by blanks.
    queue: String,
    /// File of the client's cgroup and its content, `name=content`; or `class=N`, the client's class for `ionice`.
    client_io: String,
    /// The same of each batch task.
    batch_io: String,
    /// Content of `io.cost.qos`, and after a `;` of `io.cost.model`.
    cost: String,
    /// Options of `luc throttle run`; empty without it.
    throttle: String,
}

impl ClientSetting {
    fn of(scheduler: &'static str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scheduler,
            read_ahead_kib: READ_AHEAD_KIB,
            queue: String::new(),
            client_io: String::new(),
            batch_io: String::new(),
            cost: String::new(),
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

    fn reading_ahead_each(&self, read_ahead_kib: &[u64]) -> Vec<Self> {
        read_ahead_kib.iter().map(|&kib| self.reading_ahead(kib)).collect()
    }

    /// Adds settings of the client's and of each batch task's cgroup.
    fn with_io(self, client_io: &str, batch_io: &str) -> Self {
        Self { client_io: client_io.to_owned(), batch_io: batch_io.to_owned(), ..self }
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
    let latency = u8::from(is_low_latency);
    let (weights, client_io, batch_io) = if is_weighted {
        ("weights 1000 : 1", "io.bfq.weight=1000", "io.bfq.weight=1")
    } else {
        ("equal weights", "", "")
    };
    let setting = ClientSetting::of("bfq", &format!("BFQ, low_latency {latency}, {weights}"));
    ClientSetting { queue: format!("low_latency={latency}"), ..setting }
        .with_io(client_io, batch_io)
}

/// BFQ whose turns of a task end after `timeout_ms`; the kernel's own are 124 ms.
fn bfq_turns(of: &ClientSetting, timeout_ms: u64) -> ClientSetting {
    ClientSetting {
        name: format!("{}, timeout_sync {timeout_ms} ms", of.name),
        queue: format!("{} timeout_sync={timeout_ms}", of.queue),
        ..of.clone()
    }
}

/// The client in the real-time class of a scheduler, and the batch in the idle one.
fn classes(of: &ClientSetting) -> ClientSetting {
    let name = format!("{}, classes real-time : idle", of.name);
    ClientSetting { name, ..of.clone() }.with_io("class=1", "class=3")
}

/// iocost with weights of client and batch, under this `io.cost.qos`.
fn iocost(name: &str, client: u64, qos: Option<&str>) -> ClientSetting {
    let (measured, model) = COST_MEASURED.split_once(';').unwrap_or((COST_MEASURED, ""));
    let cost = format!("{};{model}", qos.unwrap_or(measured));
    let name = format!("iocost, weights {client} : 1{name}");
    ClientSetting { cost, ..ClientSetting::of("none", &name) }
        .with_io(&format!("io.weight={client}"), "io.weight=1")
}

/// Returns all settings of iocost. With `larger`, those with larger read-ahead, too.
fn iocosts(larger: bool) -> Vec<ClientSetting> {
    let mut all: Vec<_> = [10, 100, 10_000].map(|client| iocost("", client, None)).into();
    let mut tighter = Vec::new();
    for rate in COST_RATES {
        let qos = format!("ctrl=user rpct=0 rlat=0 wpct=0 wlat=0 min={rate} max={rate}");
        tighter.push(iocost(&format!(", rate {rate} %"), 10_000, Some(&qos)));
    }
    for target in COST_TARGETS_MS {
        let us = 1000 * target;
        let qos = format!("ctrl=user rpct=95 rlat={us} wpct=95 wlat={us} min=10 max=100");
        tighter.push(iocost(&format!(", latency {target} ms"), 10_000, Some(&qos)));
    }
    if larger {
        all.extend(iocost("", 10_000, None).reading_ahead_each(&[256, 512, 1024]));
        all.extend(tighter.iter().map(|setting| setting.reading_ahead(512)).collect::<Vec<_>>());
    }
    all.extend(tighter);
    all
}

/// Returns all settings of io.max: the less the batch is given, the more is the client's.
fn limits(parts: &[(u64, &[u64])]) -> Vec<ClientSetting> {
    let limit = |part: u64| {
        let rate = PEAK_BYTES_PER_SECOND / part;
        let name = format!("io.max, 1/{part} of the peak for each of the batch");
        ClientSetting::of("none", &name).with_io("", &format!("io.max=rbps={rate} wbps={rate}"))
    };
    let mut all = Vec::new();
    for &(kib, parts) in parts {
        all.extend(parts.iter().map(|&part| match kib {
            READ_AHEAD_KIB => limit(part),
            _ => limit(part).reading_ahead(kib),
        }));
    }
    all
}

/// Returns all rivals of a scenario. Each family has about as many settings as `luc throttle` has.
pub(super) fn rivals(scenario: Scenario) -> Vec<ClientSetting> {
    let deadline = ClientSetting::of("mq-deadline", "mq-deadline");
    let (usual, soft) = (bfq(false, false), bfq(true, true));
    let mut all = vec![plain(), deadline.clone(), classes(&deadline)];
    all.extend([usual.clone(), bfq(true, false), bfq(false, true), soft.clone(), classes(&usual)]);
    all.extend([20, 40, 60].map(|ms| bfq_turns(&usual, ms)));
    all.extend([20, 40].map(|ms| bfq_turns(&soft, ms)));
    all.extend(iocosts(scenario == Scenario::Reads));
    match scenario {
        Scenario::Reads => {
            all.extend(limits(&READ_PARTS));
            for of in [plain(), deadline.clone(), usual.clone(), bfq(true, false), soft] {
                all.extend(of.reading_ahead_each(&LARGER_READ_AHEAD_KIB));
            }
            all.push(bfq(false, true).reading_ahead(512));
            all.extend([20, 40, 60].map(|ms| bfq_turns(&usual, ms).reading_ahead(512)));
            all.extend(classes(&deadline).reading_ahead_each(&[256, 512, 1024]));
            all.push(classes(&usual).reading_ahead(512));
        }
        Scenario::Fsyncs => {
            all.extend(limits(&WRITE_PARTS));
            all.push(soft.reading_ahead(512));
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
