//! Prints why the slowest requests are slow.

use std::fmt;

use luc_units::figures::{Share, Time};

use super::style::Style;
use super::table::Table;
use crate::explain::{Findings, worth_showing};

/// Maximum number of addresses.
const MAX_ADDRESSES: usize = 3;
/// Maximum number of findings of an address.
const MAX_FINDINGS: usize = 6;
/// Minimum share of a finding after the first.
const MIN_SHARE: f64 = 0.02;

pub(super) fn write(f: &mut fmt::Formatter<'_>, style: Style, all: &[Findings]) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    style.title(f, "Why the slowest requests are slow")?;
    for found in all.iter().take(MAX_ADDRESSES) {
        writeln!(f, "  {}", title(found))?;
        let mut table =
            Table::new(">share | >95 % interval | >of usual ones | >shorter without by | what");
        for one in worth_showing(&found.findings, MAX_FINDINGS, MIN_SHARE) {
            table.row(vec![
                Share(one.share).to_string(),
                format!("{} to {}", Share(one.share_low), Share(one.share_high)),
                Share::of(one.usual_time_ns, found.usual.time_ns).to_string(),
                Time::from(one.saved_ns / found.slowest.requests.max(1)).to_string(),
                one.text.clone(),
            ]);
        }
        write!(f, "{table}")?;
    }
    Ok(())
}

/// Title that compares the slowest requests to an address with usual ones.
pub(crate) fn title(found: &Findings) -> String {
    format!(
        "{}: the slowest {} of {} requests took {} in the mean, {} usual ones {}",
        found.address,
        found.slowest.requests,
        found.requests,
        Time::from(found.slowest.mean_ns()),
        found.usual.requests,
        Time::from(found.usual.mean_ns())
    )
}
