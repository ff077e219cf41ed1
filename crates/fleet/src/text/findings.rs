//! Why the slowest requests are slow.

use std::fmt;

use luc_units::figures::{Share, Time};

use super::style::Style;
use super::table::Table;
use crate::explain::{Finding, Findings, Group};

/// Addresses that are shown.
const ADDRESSES: usize = 3;
/// Findings of each that are shown, and the least share of those after the first.
const FINDINGS: usize = 6;
const LEAST_SHARE: f64 = 0.02;

pub(super) fn write(f: &mut fmt::Formatter<'_>, style: Style, all: &[Findings]) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    style.title(f, "Why the slowest requests are slow")?;
    for found in all.iter().take(ADDRESSES) {
        let mean = |group: &Group| Time::from(group.mean_ns());
        writeln!(
            f,
            "  {}: the slowest {} of {} requests took {} in the mean, {} usual ones {}",
            found.address,
            found.slowest.requests,
            found.requests,
            mean(&found.slowest),
            found.usual.requests,
            mean(&found.usual)
        )?;
        let mut table = Table::new(&[
            ">share",
            ">95 % interval",
            ">of usual ones",
            ">shorter without by",
            "what",
        ]);
        let is_shown = |(at, one): &(usize, &Finding)| *at == 0 || one.share >= LEAST_SHARE;
        let shown = found.findings.iter().enumerate().filter(is_shown);
        for (_, one) in shown.take(FINDINGS) {
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
