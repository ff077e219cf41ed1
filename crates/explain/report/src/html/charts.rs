//! Charts as inline SVG and HTML, which need no script.

use std::fmt::{self, Write as _};

use luc_explain::{CallTimePart, CallTimeParts, LatencyDistribution};
use luc_units::number_formats::{FormattedShare, FormattedTime};

use super::name_meanings;
use super::timeline_bins::TimelineBins;

/// Minimum share of a part that is drawn.
const MIN_SHARE: f64 = 0.002;

/// Draws a bar that is divided by parts.
pub(super) fn stacked(out: &mut String, parts: &CallTimeParts) -> fmt::Result {
    let whole = parts.sum();
    write!(out, "<div class=\"stack\" role=\"img\" aria-label=\"")?;
    for (part, ns) in largest(parts) {
        write!(out, "{} {}, ", name_meanings::label(part), FormattedShare::of(ns, whole))?;
    }
    write!(out, "\">")?;
    for (part, ns) in parts.iter() {
        let share = FormattedShare::of(ns, whole);
        if share.0 >= MIN_SHARE {
            let (name, label) = (part.name(), name_meanings::label(part));
            let percent = share.0 * 100.0;
            write!(
                out,
                "<i class=\"p-{name}\" style=\"width:{percent:.2}%\" title=\"{label}: {share}\"></i>"
            )?;
        }
    }
    writeln!(out, "</div>")
}

pub(super) fn largest(parts: &CallTimeParts) -> Vec<(CallTimePart, u64)> {
    let mut parts: Vec<(CallTimePart, u64)> = parts.iter().collect();
    parts.sort_by_key(|&(part, ns)| (std::cmp::Reverse(ns), part));
    parts
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 150.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 22.0;

/// A logarithmic axis of times, in whole decades.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogTimeAxis {
    from: i32,
    to: i32,
}

impl LogTimeAxis {
    /// Makes an axis that is wide enough for all of these; `None` if they are empty.
    pub(super) fn of(latencies: &[&LatencyDistribution]) -> Option<Self> {
        let edges = latencies
            .iter()
            .flat_map(|latency| &latency.buckets)
            .map(|&(edge_ns, _)| (edge_ns.max(1) as f64).log10());
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for edge in edges {
            (least, most) = (least.min(edge), most.max(edge));
        }
        (least <= most).then(|| {
            let from = least.floor() as i32;
            Self { from, to: (most.ceil() as i32).max(from + 1) }
        })
    }

    /// Returns the powers of ten, and on a short axis some times between them.
    fn ticks(self) -> impl Iterator<Item = f64> {
        let factors: &[f64] = match self.to - self.from {
            1 | 2 => &[1.0, 2.0, 5.0],
            3 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let most = 10_f64.powi(self.to) * 1.001;
        (self.from..=self.to)
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)))
            .filter(move |&ns| ns <= most)
    }

    fn x(self, ns: f64) -> f64 {
        let place = (ns.max(1.0).log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        place.clamp(0.0, 1.0) * WIDTH
    }
}

/// Draws a latency distribution over a logarithmic axis, with `per_octave` buckets per power of two.
pub(super) fn histogram(
    out: &mut String,
    what: &str,
    latency: &LatencyDistribution,
    axis: LogTimeAxis,
    per_octave: f64,
) -> fmt::Result {
    // 1. Buckets, at most `per_octave` for each power of two.
    let mut bars: Vec<(i64, u64)> = Vec::new();
    for &(edge_ns, count) in &latency.buckets {
        // Edges are one below a power of two, or finer.
        let step = ((edge_ns.max(1) as f64).log2() * per_octave + 1e-6).ceil() as i64;
        match bars.last_mut() {
            Some((last, sum)) if *last == step => *sum += count,
            _ => bars.push((step, count)),
        }
    }
    let most = bars.iter().map(|&(_, count)| count).max().unwrap_or(0);
    writeln!(
        out,
        "<figure class=\"chart\"><figcaption>{what} <span class=\"quiet\">{} in all; mean {}, median {}, \
         p99 {}, longest {}</span></figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Distribution of {what}: median {}, \
         99th percentile {}\">",
        latency.count,
        FormattedTime::from(latency.mean_ns),
        FormattedTime::from(latency.p50_ns),
        FormattedTime::from(latency.p99_ns),
        FormattedTime::from(latency.max_ns),
        FormattedTime::from(latency.p50_ns),
        FormattedTime::from(latency.p99_ns),
    )?;
    // 2. The grid.
    let floor = HEIGHT - BOTTOM;
    for ns in axis.ticks() {
        let x = axis.x(ns);
        let anchor = match x {
            x if x < 1.0 => "start",
            x if x > WIDTH - 1.0 => "end",
            _ => "middle",
        };
        write!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            HEIGHT - 6.0,
            FormattedTime(ns)
        )?;
    }
    // 3. The bars.
    for &(step, count) in &bars {
        let until_ns = 2_f64.powf(step as f64 / per_octave);
        let from_ns = 2_f64.powf((step - 1) as f64 / per_octave);
        let (x, right) = (axis.x(from_ns), axis.x(until_ns));
        let height = (count as f64 / most.max(1) as f64 * (floor - TOP)).max(1.0);
        write!(
            out,
            "<rect class=\"bar\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
             <title>{} to {}: {count}</title></rect>",
            floor - height,
            (right - x - 0.8).max(0.8),
            FormattedTime(from_ns),
            FormattedTime(until_ns),
        )?;
    }
    // 4. The median and the 99th percentile.
    for (name, ns, anchor, shift) in
        [("median", latency.p50_ns, "end", -4.0), ("p99", latency.p99_ns, "start", 4.0)]
    {
        let x = axis.x(ns as f64);
        // At an edge the label goes to the other side of its line.
        let (anchor, shift) = match x {
            x if x < 90.0 => ("start", 4.0),
            x if x > WIDTH - 70.0 => ("end", -4.0),
            _ => (anchor, shift),
        };
        write!(
            out,
            "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"6\" y2=\"{floor}\"/>\
             <text class=\"label\" x=\"{:.1}\" y=\"14\" text-anchor=\"{anchor}\">{name}</text>",
            x + shift
        )?;
    }
    writeln!(
        out,
        "<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{floor}\" y2=\"{floor}\"/></svg></figure>"
    )
}

const WIDE: f64 = 1_120.0;
const TALL: f64 = 148.0;
const LEFT: f64 = 56.0;
const STRIP: f64 = 12.0;

/// Draws the whole trace: per step the mean fsync time, its part for earlier commits, and the journal's busy time.
pub(super) fn overview(out: &mut String, bins: &TimelineBins) -> fmt::Result {
    let mean_ns = |ns: u64, syncs: u64| ns as f64 / syncs.max(1) as f64;
    let most_ns = bins.bins.iter().map(|bin| mean_ns(bin.sync_ns, bin.syncs)).fold(1.0, f64::max);
    let floor = TALL - BOTTOM - STRIP - 6.0;
    let step = (WIDE - LEFT) / bins.bins.len().max(1) as f64;
    let (width_ns, in_all) = (bins.width_ns, bins.bins.len());
    writeln!(
        out,
        "<figure class=\"chart\"><figcaption>The whole trace <span class=\"quiet\">in steps of {}: mean fsync, of \
         that <b class=\"key p-predecessor\"></b> waiting for an earlier commit; below, how busy the journal \
         was</span></figcaption>\
         <svg viewBox=\"0 0 {WIDE} {TALL}\" class=\"wide\" role=\"img\" aria-label=\"Mean fsync time over the trace, at \
         most {}\">",
        FormattedTime::from(width_ns),
        FormattedTime(most_ns)
    )?;
    // 1. The grid, and the strip of the journal.
    for share in [0.5, 1.0] {
        let y = floor - share * (floor - 8.0);
        write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDE}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            FormattedTime(most_ns * share)
        )?;
    }
    write!(
        out,
        "<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"end\">journal</text>\
         <rect class=\"trough\" x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"{STRIP}\"/>",
        LEFT - 6.0,
        floor + 15.0,
        floor + 6.0,
        WIDE - LEFT
    )?;
    // 2. The steps.
    for (index, bin) in bins.bins.iter().enumerate() {
        let x = LEFT + index as f64 * step;
        let wide = (step - 0.6).max(0.6);
        let busy = FormattedShare::of(bin.committing_ns.min(width_ns), width_ns);
        let height = |ns: u64| mean_ns(ns, bin.syncs) / most_ns * (floor - 8.0);
        let (all, predecessor) = (height(bin.sync_ns), height(bin.predecessor_ns));
        write!(
            out,
            "<g><title>from {}: {} fsyncs, mean {}, longest {}; {} commits, journal busy {busy}</title>",
            FormattedTime::from(width_ns.saturating_mul(index as u64)),
            bin.syncs,
            FormattedTime(mean_ns(bin.sync_ns, bin.syncs)),
            FormattedTime::from(bin.longest_ns),
            bin.commits,
        )?;
        if bin.syncs > 0 {
            write!(
                out,
                "<rect class=\"bar\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{all:.1}\"/>\
                 <rect class=\"p-predecessor\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" \
                 height=\"{predecessor:.1}\"/>",
                floor - all,
                floor - predecessor,
            )?;
        }
        if bin.committing_ns > 0 {
            write!(
                out,
                "<rect class=\"busy\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{step:.1}\" height=\"{STRIP}\" \
                 opacity=\"{:.2}\"/>",
                floor + 6.0,
                busy.0
            )?;
        }
        write!(out, "</g>")?;
    }
    // 3. The axis of time.
    let length_ns = width_ns as f64 * in_all as f64;
    let every_ns = round_step(length_ns, 9.0);
    for tick in 0..=(length_ns / every_ns) as u64 {
        let at_ns = every_ns * tick as f64;
        let share = at_ns / length_ns.max(1.0);
        let anchor = match share {
            0.0 => "start",
            share if share > 0.97 => "end",
            _ => "middle",
        };
        write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            LEFT + share * (WIDE - LEFT),
            TALL - 6.0,
            FormattedTime(at_ns)
        )?;
    }
    writeln!(out, "</svg></figure>")
}

/// Returns the least round step that divides a length into at most `most` parts.
fn round_step(length: f64, most: f64) -> f64 {
    let decade = 10_f64.powf((length / most).max(1.0).log10().floor());
    let fits = |step: &f64| length / step <= most;
    let steps = [1.0, 2.0, 5.0].map(|factor| factor * decade);
    steps.into_iter().find(fits).unwrap_or(decade * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert!((round_step(4.18e9, 9.0) - 0.5e9).abs() < 1.0);
        assert!((round_step(60e9, 9.0) - 10e9).abs() < 1.0);
        assert!((round_step(0.0, 9.0) - 1.0).abs() < 1e-9);
    }
}
