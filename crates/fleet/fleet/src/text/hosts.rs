//! Prints the hosts and their traces.

use std::fmt;

use luc_units::number_formats::FormattedTime;

use super::style::{TextStyle, count};
use super::table::TextTable;
use crate::convert_rows::UnconvertedRows;
use crate::joined_traces::HostSummary;

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    hosts: &[HostSummary],
    left_out: &UnconvertedRows,
) -> fmt::Result {
    let title = count(hosts.len() as u64, "host", "hosts");
    if style.0 {
        writeln!(f, "\x1b[1m{title}\x1b[0m")?;
    } else {
        writeln!(f, "{title}")?;
    }
    let mut table = TextTable::new(
        "host | kernel | >length | >connections | >messages | >packets | >sent again | trace",
    );
    for host in hosts {
        table.row(vec![
            host.name.clone(),
            host.kernel.clone(),
            FormattedTime::from(host.length_ns).to_string(),
            host.connections.to_string(),
            host.messages.to_string(),
            host.packets.to_string(),
            host.retransmits.to_string(),
            host.directory.clone(),
        ]);
    }
    write!(f, "{table}")?;
    write_notes(f, hosts, left_out)
}

/// Prints what limits the traces: filters, lost rows, and rows that are left out.
fn write_notes(
    f: &mut fmt::Formatter<'_>,
    hosts: &[HostSummary],
    left_out: &UnconvertedRows,
) -> fmt::Result {
    for host in hosts {
        if !host.is_complete {
            writeln!(
                f,
                "  {}: the trace has no end: its recorder still runs, or was killed",
                host.name
            )?;
        }
        if !host.filters.is_empty() {
            writeln!(f, "  {}: messages and waits are those of {} only", host.name, host.filters)?;
        }
        for (place, rows) in &host.lost {
            writeln!(f, "  {}: {rows} lost ({place}): what follows is of the rest", host.name)?;
        }
    }
    for (rows, what) in [
        (left_out.unreadable_connections, "connections with damaged addresses"),
        (left_out.without_connection, "messages and packets of connections without a row"),
        (
            left_out.uncertain_packets,
            "packets of connections older than the trace, whose numbers are not known",
        ),
        (left_out.packets_beside_lost_ones, "packets of times in which packets were lost"),
        (left_out.out_of_range, "rows with times or offsets that cannot be"),
    ] {
        if rows > 0 {
            writeln!(f, "  left out: {rows} {what}")?;
        }
    }
    Ok(())
}
