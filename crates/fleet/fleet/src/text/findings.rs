//! Prints why the slowest requests are slow.

use std::fmt;

use luc_units::number_formats::{FormattedShare, FormattedTime};

use super::style::TextStyle;
use super::table::TextTable;
use crate::explain::{SlowRequestFindings, worth_showing};

/// Maximum number of addresses.
const MAX_ADDRESSES: usize = 3;
/// Maximum number of findings of an address.
const MAX_FINDINGS: usize = 6;
/// Minimum share of a finding after the first.
const MIN_SHARE: f64 = 0.02;

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    all: &[SlowRequestFindings],
) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    style.title(f, "Why the slowest requests are slow")?;
    for found in all.iter().take(MAX_ADDRESSES) {
        writeln!(f, "  {}", title(found))?;
        let mut table =
            TextTable::new(">share | >95 % interval | >of usual ones | >largest in | what");
        for one in worth_showing(&found.findings, MAX_FINDINGS, MIN_SHARE) {
            table.row(vec![
                FormattedShare(one.share).to_string(),
                format!("{} to {}", FormattedShare(one.share_low), FormattedShare(one.share_high)),
                FormattedShare::of(one.usual_time_ns, found.usual.time_ns).to_string(),
                format!("{} of {}", one.largest_in, found.slowest.requests),
                one.text.clone(),
            ]);
        }
        write!(f, "{table}")?;
    }
    Ok(())
}

/// Title that compares the slowest requests to an address with usual ones.
pub(crate) fn title(found: &SlowRequestFindings) -> String {
    format!(
        "{}: the slowest {} of {} requests took {} in the mean, {} usual ones {}",
        found.address,
        found.slowest.requests,
        found.requests,
        FormattedTime::from(found.slowest.mean_ns()),
        found.usual.requests,
        FormattedTime::from(found.usual.mean_ns())
    )
}
