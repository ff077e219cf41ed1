//! The rivals with their settings, and the policies of `luc throttle`.

/// Maximum rate of the disk, bytes a second, which `io.max` divides.
pub(super) const PEAK_BYTES_PER_SECOND: u64 = 105_000_000;
/// The kernel's read-ahead of a disk, KiB.
pub(super) const READ_AHEAD_KIB: u64 = 128;
/// Larger read-ahead that is tried, KiB.
const LARGER_READ_AHEAD_KIB: [u64; 3] = [512, 2048, 4096];
/// Coefficients of the emulated hard disk for iocost, as resctl-bench would measure them. They are rates of one
/// probing task, with large and with small blocks, in order and at random. Latency neither loosens nor tightens them.
pub(super) const COST_MEASURED: &str = "ctrl=user rpct=0 rlat=0 wpct=0 wlat=0 min=100 max=100;ctrl=user model=linear \
    rbps=105000000 rseqiops=7000 rrandiops=75 wbps=105000000 wseqiops=7000 wrandiops=120";
/// iocost as the kernel configures itself.
const COST_AUTOMATIC: &str = "ctrl=auto;ctrl=auto";

/// Name of the rule of resctl-demo's side-loader in `cell.sh`.
const SIDE_LOADER: &str = "side-loader";

/// A setting that tasks run under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) scheduler: &'static str,
    pub(super) read_ahead_kib: u64,
    /// Settings of the scheduler, `name=value`, separated by blanks.
    pub(super) queue: &'static str,
    /// File of each task's cgroup and its content, `name=content`.
    pub(super) task_io: String,
    /// Content of `io.cost.qos`, and after a `;` of `io.cost.model`.
    pub(super) cost: &'static str,
    /// Policy of `luc throttle`, or [`SIDE_LOADER`]; empty if nobody freezes tasks.
    pub(super) policy: &'static str,
}

impl Setting {
    fn of(scheduler: &'static str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scheduler,
            read_ahead_kib: READ_AHEAD_KIB,
            queue: "",
            task_io: String::new(),
            cost: "",
            policy: "",
        }
    }

    fn reading_ahead(&self, read_ahead_kib: u64) -> Self {
        Self {
            name: format!("{}, read-ahead {read_ahead_kib} KiB", self.name),
            read_ahead_kib,
            ..self.clone()
        }
    }

    /// Whether the setting uses `luc throttle`.
    pub(super) fn is_ours(&self) -> bool {
        !self.policy.is_empty() && self.policy != SIDE_LOADER
    }

    /// Returns the words of `cell` in `cell.sh` after its name and tasks, without the places.
    pub(super) fn words(&self) -> [String; 5] {
        let quoted = |text: &str| format!("'{text}'");
        [
            self.scheduler.to_owned(),
            self.read_ahead_kib.to_string(),
            quoted(self.queue),
            quoted(&self.task_io),
            quoted(self.cost),
        ]
    }
}

/// No scheduler, and the kernel's own read-ahead. Most systems have this, and times alone are measured under it.
pub(super) fn plain() -> Setting {
    Setting::of("none", "none")
}

/// BFQ with a group for each task. Without low latency it is made for throughput.
fn bfq(name: &str, queue: &'static str) -> Setting {
    Setting { queue, ..Setting::of("bfq", name) }
}

/// Rivals that a kernel has without the io controller of cgroup v2.
pub(super) fn schedulers() -> Vec<Setting> {
    let deadline = Setting::of("mq-deadline", "mq-deadline");
    let throughput = bfq("BFQ, low_latency 0", "low_latency=0");
    let mut all = vec![
        plain(),
        deadline.clone(),
        Setting::of("kyber", "kyber"),
        throughput.clone(),
        bfq("BFQ, low_latency 1", "low_latency=1"),
        bfq("BFQ, low_latency 0, timeout_sync 1000 ms", "low_latency=0 timeout_sync=1000"),
        bfq("BFQ, low_latency 0, timeout_sync 10000 ms", "low_latency=0 timeout_sync=10000"),
    ];
    for of in [plain(), deadline, throughput] {
        all.extend(LARGER_READ_AHEAD_KIB.map(|kib| of.reading_ahead(kib)));
    }
    all
}

/// Returns all rivals, where `tasks` run at a time.
pub(super) fn rivals(tasks: usize) -> Vec<Setting> {
    let mut all = schedulers();
    let cost = |name: &str, cost| Setting { cost, ..Setting::of("none", name) };
    all.push(cost("iocost, automatic", COST_AUTOMATIC));
    all.push(cost("iocost, measured", COST_MEASURED));
    all.push(Setting {
        policy: SIDE_LOADER,
        ..Setting::of("none", "all frozen for 10 s on pressure")
    });
    let share = PEAK_BYTES_PER_SECOND / tasks.max(1) as u64;
    all.push(Setting {
        task_io: format!("io.max=rbps={share} wbps={share}"),
        ..Setting::of("none", "io.max, an equal share each")
    });
    all
}

/// Returns the rivals without those that were far from the best for streams.
pub(super) fn main_rivals() -> Vec<Setting> {
    let is_wanted = |setting: &Setting| {
        matches!(setting.read_ahead_kib, READ_AHEAD_KIB | 2048) && setting.scheduler != "kyber"
    };
    schedulers().into_iter().filter(is_wanted).collect()
}

/// `luc throttle` without a scheduler below it, and its default with others.
pub(super) fn ours() -> Vec<Setting> {
    let policy = |policy, name: &str| Setting { policy, ..Setting::of("none", name) };
    let auto = policy("auto", "luc throttle, auto");
    vec![
        auto.clone(),
        policy("fcfs", "luc throttle, fcfs"),
        policy("turns:250ms", "luc throttle, turns of 250 ms"),
        policy("turns:1s", "luc throttle, turns of 1 s"),
        Setting {
            scheduler: "mq-deadline",
            ..policy("auto", "luc throttle, auto, on mq-deadline")
        },
        auto.reading_ahead(2048),
    ]
}

/// Returns ours without turns of fixed length and larger read-ahead.
pub(super) fn main_ours() -> Vec<Setting> {
    let is_wanted = |setting: &Setting| {
        setting.read_ahead_kib == READ_AHEAD_KIB && !setting.policy.starts_with("turns")
    };
    ours().into_iter().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_setting_has_a_name_of_its_own() {
        let all: Vec<Setting> = rivals(4).into_iter().chain(ours()).collect();
        let names: HashSet<&str> = all.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().any(Setting::is_ours) && !rivals(4).iter().any(Setting::is_ours));
    }

    #[test]
    fn words_are_quoted() {
        let all = rivals(4);
        let last = all.last().expect("io.max").words().join(" ");
        assert_eq!(last, "none 128 '' 'io.max=rbps=26250000 wbps=26250000' ''");
    }
}
