//! Prints how clocks relate.

use std::fmt;

use luc_units::number_formats::{FormattedShare, FormattedTime};

use super::style::{TextStyle, count, signed};
use crate::clock_fit_report::{OffsetReport, PairReport, UnrelatedHost};

/// Maximum number of listed jumps.
const MAX_JUMPS: usize = 10;

/// Prints a few lines for each pair.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    pairs: &[PairReport],
    unrelated: &[UnrelatedHost],
) -> fmt::Result {
    style.title(f, "Clocks (CLOCK_MONOTONIC_RAW; bounds are guaranteed)")?;
    for pair in pairs {
        writeln!(
            f,
            "  {} and {}: {}; {} there, {} back",
            pair.a,
            pair.b,
            count(pair.connections, "connection", "connections"),
            count(pair.packets_a_to_b as u64, "packet", "packets"),
            count(pair.packets_b_to_a as u64, "packet", "packets")
        )?;
        if let Some(failure) = &pair.failure {
            writeln!(f, "    not known: {failure}")?;
        }
        if let Some(offset) = &pair.offset {
            write_offset(f, pair, offset)?;
        }
    }
    write_unrelated(f, pairs, unrelated)
}

/// Prints a line for each pair.
pub(super) fn write_briefly(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    pairs: &[PairReport],
    unrelated: &[UnrelatedHost],
) -> fmt::Result {
    style.title(f, "Clocks (more: luc-fleet fit)")?;
    for pair in pairs {
        let half_width = pair.offset.as_ref().and_then(|offset| offset.half_width);
        let known = match half_width {
            Some(half_width) => {
                format!("known to {} either side", FormattedTime(half_width.median_ns))
            }
            None => "not bounded on both sides".to_owned(),
        };
        let jumps = match pair.offset.as_ref().map_or(0, |offset| offset.jumps.len()) {
            0 => String::new(),
            jumps => format!(", {}", count(jumps as u64, "jump", "jumps")),
        };
        writeln!(f, "  {} and {}: {known}{jumps}", pair.a, pair.b)?;
    }
    write_unrelated(f, pairs, unrelated)
}

/// Prints why times between hosts are unknown, if they are.
pub(super) fn write_contradiction(
    f: &mut fmt::Formatter<'_>,
    contradiction: Option<&str>,
) -> fmt::Result {
    match contradiction {
        Some(contradiction) => writeln!(f, "  times between hosts are not known: {contradiction}"),
        None => Ok(()),
    }
}

fn write_unrelated(
    f: &mut fmt::Formatter<'_>,
    pairs: &[PairReport],
    unrelated: &[UnrelatedHost],
) -> fmt::Result {
    for host in unrelated {
        writeln!(f, "  {}: not known: {}", host.host, host.reason)?;
    }
    if pairs.is_empty() && unrelated.is_empty() {
        writeln!(f, "  one host has no offset")?;
    }
    Ok(())
}

fn write_offset(
    f: &mut fmt::Formatter<'_>,
    pair: &PairReport,
    offset: &OffsetReport,
) -> fmt::Result {
    // 1. The offset and its bounds. Three digits cannot hold an offset of days in ns.
    let at = signed(offset.at_ns);
    let bounds = offset.low_ns.zip(offset.high_ns);
    let middle_ns = bounds.map(|(low, high)| offset.offset_ns.unwrap_or(low.midpoint(high)));
    let parts: Vec<String> =
        [(middle_ns, ""), (offset.low_ns, " at least"), (offset.high_ns, " at most")]
            .into_iter()
            .filter_map(|(ns, what)| Some(format!("{} ns{what}", group_digits(ns?))))
            .collect();
    if parts.is_empty() {
        writeln!(f, "    not known at {at}")?;
    } else {
        writeln!(f, "    {} less {}: {}, at {at}", pair.b, pair.a, parts.join(", "))?;
    }
    // 2. How far the bounds are apart, and how fast the offset changes.
    if let Some(width) = offset.half_width {
        writeln!(
            f,
            "    half-width: {} at least, {} in the middle, {} at most",
            FormattedTime(width.min_ns),
            FormattedTime(width.median_ns),
            FormattedTime(width.max_ns)
        )?;
    }
    if offset.without_a_bound > 0.0 {
        writeln!(
            f,
            "    a bound is missing in {} of the time",
            FormattedShare(offset.without_a_bound)
        )?;
    }
    if let Some(drift) = offset.drift {
        writeln!(
            f,
            "    {}'s clock gains {:.3} ± {:.3} ppm on {}'s, over {}",
            pair.b,
            drift.ppm,
            drift.error_ppm,
            pair.a,
            signed(drift.over_ns)
        )?;
    }
    // 3. What they rest on, and jumps.
    let knots = offset.knots;
    writeln!(
        f,
        "    evidence: {} by packets nearby, {} by packets further away, {} beside jumps, {} before or after all",
        count(knots.packets, "knot", "knots"),
        knots.curvature,
        knots.jump,
        knots.beyond
    )?;
    if offset.is_strained {
        writeln!(
            f,
            "    the offset bends more than a crystal does: bounds are of 2 s around a time each"
        )?;
    }
    for jump in offset.jumps.iter().take(MAX_JUMPS) {
        let [after, before] = [jump.after_ns, jump.before_ns].map(signed);
        let by =
            jump.by_ns.map_or_else(String::new, |by_ns| format!(", by {} ns", group_digits(by_ns)));
        writeln!(f, "    a clock jumped between {after} and {before}{by}")?;
    }
    if offset.jumps.len() > MAX_JUMPS {
        writeln!(f, "    and {} more jumps", offset.jumps.len() - MAX_JUMPS)?;
    }
    Ok(())
}

/// Formats a number with commas between its thousands.
fn group_digits(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let shown = [0, 999, -1_000, 1_234_567].map(group_digits);
        assert_eq!(shown, ["0", "999", "-1,000", "1,234,567"]);
        assert_eq!(group_digits(i64::MIN), "-9,223,372,036,854,775,808");
    }
}
