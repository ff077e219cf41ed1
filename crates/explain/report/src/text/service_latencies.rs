//! Latencies of services, for a terminal.

use std::fmt;

use luc_explain::ServiceLatency;
use luc_units::number_formats::FormattedTime;

use super::{MAX_ROWS, ReportText, clean, more};

impl ReportText<'_> {
    /// Writes the services with their worst intervals.
    pub(super) fn services(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services = &self.report.services;
        if services.is_empty() {
            return Ok(());
        }
        self.title(f, "How long requests took, by service and peer")?;
        writeln!(
            f,
            "  {:<16} {:<7} {:>5} {:<24} {:>10} {:>10} {:>10} {:>10}  worst interval: p99",
            "program", "side", "port", "peer", "1/s", "median", "p99", "p99.9"
        )?;
        for service in services.iter().take(MAX_ROWS) {
            service_row(f, service)?;
        }
        more(f, services.len())
    }
}

fn service_row(f: &mut fmt::Formatter<'_>, service: &ServiceLatency) -> fmt::Result {
    let latency = &service.latency;
    writeln!(
        f,
        "  {:<16} {:<7} {:>5} {:<24} {:>10.1} {:>10} {:>10} {:>10}  {} (from {} on)",
        clean(&service.program),
        service.side,
        service.port,
        peer(service),
        service.per_s,
        FormattedTime::from(latency.p50_ns),
        FormattedTime::from(latency.p99_ns),
        FormattedTime::from(latency.p999_ns),
        FormattedTime::from(service.worst.p99_ns),
        FormattedTime::from(service.worst.since_start_ns),
    )
}

/// Returns the peer's address, or words for all other peers.
pub(crate) fn peer(service: &ServiceLatency) -> String {
    if service.peer.is_empty() { "all other peers".to_owned() } else { clean(&service.peer) }
}
