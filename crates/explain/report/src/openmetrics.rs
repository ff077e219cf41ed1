//! A report as metrics for Prometheus and others: OpenMetrics text, or Prometheus' older text format.
//!
//! node_exporter, pushgateways and promtool read the older one alone. They take this OpenMetrics text as well, but
//! then do not see which series are counters.
//!
//! The number of series is bounded: 100 file systems, disks, cgroups and findings at most; what is beyond is
//! summed as `other` or left out, and all other labels have few values. Times are seconds.
//!
//! Sources: the OpenMetrics specification 1.0, <https://prometheus.io/docs/specs/om/open_metrics_spec/>, and
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::RangeInclusive;

use luc_explain::{
    AnalysisObserver, CallKindReport, CallTimePart, FileSystemReport, LatencyDistribution,
    TimeAccount, TraceReport,
};
pub use luc_units::metric_families::MetricFormat;
use luc_units::metric_families::{MetricFamilies, MetricLabels, MetricType};

use crate::ReportExport;

mod disk_sharing;

/// Maximum number of file systems, of disks, of cgroups and of findings that have metrics.
const MAX_SERIES: usize = 100;
/// Powers of two, in ns, at which buckets end: 1 us to 69 s. All series have all buckets, because sums over series are
/// sums over their buckets.
const BUCKETS: RangeInclusive<u32> = 10..=36;

/// Writer of a report's OpenMetrics text.
#[derive(Debug)]
pub struct OpenMetricsWriter<W>(pub W);

impl<W> AnalysisObserver for OpenMetricsWriter<W> {}

impl<W: Write> ReportExport for OpenMetricsWriter<W> {
    fn finish(mut self: Box<Self>, report: &TraceReport) -> io::Result<()> {
        self.0.write_all(text(report, MetricFormat::OpenMetrics).as_bytes())?;
        self.0.flush()
    }
}

/// Writer of a report's text in Prometheus' format, version 0.0.4.
#[derive(Debug)]
pub struct PrometheusWriter<W>(pub W);

impl<W> AnalysisObserver for PrometheusWriter<W> {}

impl<W: Write> ReportExport for PrometheusWriter<W> {
    fn finish(mut self: Box<Self>, report: &TraceReport) -> io::Result<()> {
        self.0.write_all(text(report, MetricFormat::Prometheus).as_bytes())?;
        self.0.flush()
    }
}

#[must_use]
pub fn text(report: &TraceReport, style: MetricFormat) -> String {
    let mut families = MetricFamilies::default();
    trace(&mut families, report);
    for file_system in report.file_systems.iter().take(MAX_SERIES) {
        syncs(&mut families, file_system);
        commits(&mut families, file_system);
        for (name, call) in &file_system.calls {
            calls(&mut families, file_system, name, call);
        }
    }
    disks(&mut families, report);
    cgroups(&mut families, &report.accounts.cgroups);
    findings(&mut families, report);
    families.text(style)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn trace(families: &mut MetricFamilies, report: &TraceReport) {
    let trace = &report.trace;
    let labels = MetricLabels::new()
        .with("host", &trace.host)
        .with("kernel", &trace.kernel)
        .with("mode", &trace.mode)
        .with("report_version", report.version);
    let help = "Where the trace is from.";
    families.family("luc_trace_info", MetricType::Info, help).sample("", &labels, 1.0);
    let none = MetricLabels::new();
    let length_ns = trace.end_ns.saturating_sub(trace.start_ns);
    let end_ns = trace.end_ns.saturating_add(trace.realtime_offset_ns);
    let gauges = [
        ("luc_trace_length_seconds", "How long was recorded.", seconds(length_ns)),
        ("luc_trace_end_time_seconds", "When the recording ended, since 1970.", seconds(end_ns)),
        (
            "luc_trace_complete",
            "1 if the recorder wrote down its end.",
            f64::from(u8::from(trace.complete)),
        ),
    ];
    for (name, help, value) in gauges {
        families.gauge(name, help, &none, value);
    }
    let events = families.family("luc_trace_events", MetricType::Counter, "Events read.");
    events.sample("_total", &none, trace.events as f64);
    for (place, &count) in report.lost.iter().take(MAX_SERIES) {
        let help = "Events that the recorder could not keep.";
        families.counter(
            "luc_trace_lost_events",
            help,
            &MetricLabels::new().with("table", place),
            count as f64,
        );
    }
}

fn place(file_system: &FileSystemReport) -> MetricLabels {
    MetricLabels::new()
        .with("device", file_system.dev)
        .with("mount_point", &file_system.mount_point)
        .with("type", &file_system.kind)
}

fn syncs(families: &mut MetricFamilies, file_system: &FileSystemReport) {
    let place = place(file_system);
    let syncs = &file_system.syncs;
    let help = "Calls of fsync and the like.";
    histogram(families, "luc_sync_duration_seconds", help, &place, &syncs.latency);
    for (kind, &count) in &syncs.kinds {
        let help = "Calls of fsync and the like, by call.";
        families.counter("luc_syncs", help, &place.with("call", kind), count as f64);
    }
    let help = "Calls of fsync and the like that failed.";
    families.counter("luc_sync_errors", help, &place, syncs.errors as f64);
    for (part, ns) in syncs.parts.iter() {
        let help = "Where the time of fsync and the like went.";
        families.counter(
            "luc_sync_part_seconds",
            help,
            &place.with("part", part.name()),
            seconds(ns),
        );
    }
    let gauges = [
        (
            "luc_sync_callers",
            "Threads that called fsync or the like twice or more.",
            syncs.callers as f64,
        ),
        (
            "luc_syncs_per_commit",
            "fsyncs served by each commit that served any.",
            file_system.commits.syncs_per_commit,
        ),
        (
            "luc_batching_predicted_gain_ratio",
            "Predicted gain in fsyncs per second under luc run, as a fraction.",
            file_system.batching.gain,
        ),
        (
            "luc_journal_size_bytes",
            "The journal's size; 0 if there is none or it is not known.",
            file_system.journal_bytes as f64,
        ),
    ];
    for (name, help, value) in gauges {
        families.gauge(name, help, &place, value);
    }
}

fn commits(families: &mut MetricFamilies, file_system: &FileSystemReport) {
    let place = place(file_system);
    let commits = &file_system.commits;
    for (kind, latency) in [("full", &commits.full), ("fast", &commits.fast)] {
        let help = "Journal commits.";
        let labels = place.with("kind", kind);
        histogram(families, "luc_commit_duration_seconds", help, &labels, latency);
    }
    for (phase, ns) in [
        (CallTimePart::Locking, commits.locking_ns),
        (CallTimePart::Flushing, commits.flushing_ns),
        (CallTimePart::Logging, commits.logging_ns),
    ] {
        let help = "Time of full commits by phase.";
        families.counter(
            "luc_commit_phase_seconds",
            help,
            &place.with("phase", phase.name()),
            seconds(ns),
        );
    }
}

fn calls(
    families: &mut MetricFamilies,
    file_system: &FileSystemReport,
    name: &str,
    call: &CallKindReport,
) {
    let labels = place(file_system).with("call", name);
    let help = "Other calls on files.";
    histogram(families, "luc_call_duration_seconds", help, &labels, &call.latency);
    for (part, ns) in call.parts.iter() {
        let help = "Where the time of other calls went.";
        families.counter(
            "luc_call_part_seconds",
            help,
            &labels.with("part", part.name()),
            seconds(ns),
        );
    }
}

fn disks(families: &mut MetricFamilies, report: &TraceReport) {
    for disk in report.disks.iter().take(MAX_SERIES) {
        let labels = MetricLabels::new().with("device", disk.dev);
        for (kind, latency) in &disk.device {
            let help = "Block requests, from issue to completion.";
            let labels = labels.with("kind", kind);
            histogram(families, "luc_request_duration_seconds", help, &labels, latency);
        }
        let help = "Bytes of block requests.";
        families.counter("luc_request_bytes", help, &labels, disk.bytes as f64);
        let help = "Block requests that failed.";
        families.counter("luc_request_errors", help, &labels, disk.errors as f64);
        disk_sharing::sharing(families, disk);
    }
}

/// Adds the thread time of cgroups by state. Cgroups beyond the first are summed.
fn cgroups(families: &mut MetricFamilies, accounts: &[TimeAccount]) {
    let mut rest: BTreeMap<&str, u64> = BTreeMap::new();
    for (index, account) in accounts.iter().enumerate() {
        let blocked_ns = account.blocked.values().fold(0, |sum: u64, &ns| sum.saturating_add(ns));
        let states = [
            ("user", account.user_ns),
            ("system", account.system_ns),
            ("runnable", account.runnable_ns),
            ("storage", account.storage_ns),
            ("blocked", blocked_ns.saturating_sub(account.storage_ns)),
            ("idle", account.idle_ns),
        ];
        for (state, ns) in states {
            if index < MAX_SERIES {
                cgroup(families, &account.cgroup.to_string(), state, ns);
            } else {
                let sum = rest.entry(state).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
    }
    for (state, ns) in rest {
        cgroup(families, "other", state, ns);
    }
}

fn cgroup(families: &mut MetricFamilies, id: &str, state: &str, ns: u64) {
    let help = "Thread time of a cgroup, by what threads did; storage is not in blocked.";
    let labels = MetricLabels::new().with("cgroup", id).with("state", state);
    families.counter("luc_cgroup_thread_seconds", help, &labels, seconds(ns));
}

/// Adds costs by kind and file system. Findings with the same labels are summed.
fn findings(families: &mut MetricFamilies, report: &TraceReport) {
    let mut costs: BTreeMap<(&str, String), (u64, f64)> = BTreeMap::new();
    for finding in &report.findings {
        let device = finding.dev.map_or_else(String::new, |dev| dev.to_string());
        let sum = costs.entry((finding.kind.name(), device)).or_default();
        *sum = (sum.0.saturating_add(finding.cost_ns), sum.1 + finding.share);
    }
    for ((kind, device), (cost_ns, share)) in costs.into_iter().take(MAX_SERIES) {
        let labels = MetricLabels::new().with("finding", kind).with("device", device);
        let help = "Thread time lost to a finding.";
        families.gauge("luc_finding_cost_seconds", help, &labels, seconds(cost_ns));
        let help = "The same over the time spent in calls on files.";
        families.gauge("luc_finding_share_ratio", help, &labels, share);
    }
}

/// Adds a histogram with a bucket per power of two, including the empty ones.
fn histogram(
    families: &mut MetricFamilies,
    name: &'static str,
    help: &'static str,
    labels: &MetricLabels,
    latency: &LatencyDistribution,
) {
    let family = families.family(name, MetricType::Histogram, help);
    let up_to = |edge_ns: u64| {
        let buckets = latency.buckets.iter();
        let inside = buckets.filter(|&&(upper_ns, _)| upper_ns <= edge_ns);
        inside.fold(0_u64, |sum, &(_, count)| sum.saturating_add(count)) as f64
    };
    for power in BUCKETS {
        // Buckets end one nanosecond below a power of two or are finer than that.
        let edge_ns = (1 << power) - 1;
        let labels = labels.with("le", seconds(edge_ns));
        family.sample("_bucket", &labels, up_to(edge_ns));
    }
    let all = up_to(u64::MAX);
    family.sample("_bucket", &labels.with("le", "+Inf"), all);
    family.sample("_count", labels, all);
    family.sample("_sum", labels, seconds(latency.total_ns));
}

#[cfg(test)]
mod tests;
