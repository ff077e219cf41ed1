//! Lines with bands, as SVG, and the same as a table.

use std::fmt::{self, Write as _};

use super::axis_scale::AxisScale;
use super::{AxisTick, EstimatedValue, LineGraph, MOST_SERIES};
use crate::html_escape::EscapedText;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
/// Names along the axis have this much room for each letter, and between them.
const LETTER_WIDTH: f64 = 6.6;

pub(super) fn write(out: &mut String, lines: &LineGraph) -> fmt::Result {
    // 1. Lines and scales.
    let series = &lines.series[..lines.series.len().min(MOST_SERIES)];
    let figures = || series.iter().flat_map(|line| line.figures.iter().flatten());
    let ends = figures().flat_map(|figure| {
        let (low, high) = figure.bounds();
        [low, high, figure.value]
    });
    let up = AxisScale::around(ends.chain(lines.reference).filter(|value| value.is_finite()));
    let y = |value: f64| HEIGHT - BOTTOM - up.place(value) * (HEIGHT - TOP - BOTTOM);
    let xs = places(&lines.places);
    writeln!(
        out,
        "<figure class=\"chart\"><figcaption>{}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}: {} over {}, {} lines; the table below has \
         the figures\">",
        EscapedText(&lines.title),
        EscapedText(&lines.title),
        EscapedText(&lines.up),
        EscapedText(&lines.across),
        series.len()
    )?;
    // 2. Grid, axes and their labels.
    let right = WIDTH - RIGHT;
    for (tick, name) in up.named_ticks() {
        let y = y(tick);
        write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 7.0,
            y + 4.0,
            name
        )?;
    }
    let floor = HEIGHT - BOTTOM;
    write!(
        out,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{floor}\" y2=\"{floor}\"/>\
         <text class=\"label\" x=\"0\" y=\"12\">{}</text>\
         <text class=\"label\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        EscapedText(&lines.up),
        HEIGHT - 6.0,
        EscapedText(&lines.across)
    )?;
    if let Some(reference) = lines.reference {
        let y = y(reference);
        write!(
            out,
            "<line class=\"mark\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        )?;
    }
    names(out, &lines.places, &xs)?;
    // 3. Each line, with its intervals.
    for (number, line) in series.iter().enumerate() {
        let there: Vec<(f64, &EstimatedValue)> = xs
            .iter()
            .zip(&line.figures)
            .filter_map(|(&x, figure)| Some((x, figure.as_ref()?)))
            .collect();
        band(out, number, &there, &y)?;
        let points = there.iter().map(|(x, figure)| format!("{x:.1},{:.1}", y(figure.value)));
        writeln!(
            out,
            "<polyline class=\"line c{number}\" points=\"{}\"/>",
            points.collect::<Vec<_>>().join(" ")
        )?;
        for (x, figure) in there {
            mark(out, number, x, y(figure.value))?;
        }
    }
    // 4. The legend, and the figures as a table.
    writeln!(out, "</svg><p class=\"legend\">")?;
    for (number, line) in series.iter().enumerate() {
        write!(
            out,
            "<span><svg class=\"sign\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">\
             <polyline class=\"line c{number}\" points=\"0,6 26,6\"/>"
        )?;
        mark(out, number, 13.0, 6.0)?;
        write!(out, "</svg>{}</span>", EscapedText(&line.name))?;
    }
    writeln!(out, "</p>")?;
    table(out, lines)?;
    writeln!(out, "</figure>")
}

fn places(places: &[AxisTick]) -> Vec<f64> {
    let numbers: Option<Vec<f64>> =
        places.iter().map(|place| place.number.filter(|number| number.is_finite())).collect();
    // The outermost marks and names stay inside.
    let (from, to) = (LEFT + 16.0, WIDTH - RIGHT - 16.0);
    match numbers {
        Some(numbers) => {
            let scale = AxisScale::over(numbers.iter().copied());
            let x = |number: f64| from + scale.place(number) * (to - from);
            numbers.into_iter().map(x).collect()
        }
        None => {
            let gaps = places.len().saturating_sub(1).max(1) as f64;
            (0..places.len()).map(|at| from + at as f64 / gaps * (to - from)).collect()
        }
    }
}

/// Writes names below the axis, except for those that would cover the one before.
fn names(out: &mut String, places: &[AxisTick], xs: &[f64]) -> fmt::Result {
    let mut named: Vec<(f64, f64)> = Vec::new();
    for (place, &x) in places.iter().zip(xs) {
        let half = place.name.chars().count().min(30) as f64 * LETTER_WIDTH / 2.0;
        // At the ends they may not leave the drawing.
        let (low, high) = (half.min(WIDTH / 2.0), (WIDTH - half).max(WIDTH / 2.0));
        let middle = x.clamp(low, high);
        let (left, right) = (middle - half, middle + half);
        write!(
            out,
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 4.0
        )?;
        if named.iter().any(|&(l, r)| left < r + LETTER_WIDTH && l < right + LETTER_WIDTH) {
            continue;
        }
        named.push((left, right));
        write!(
            out,
            "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 17.0,
            EscapedText(&place.name)
        )?;
    }
    Ok(())
}

/// Draws the intervals: an area between places, or a bar if there is only one place.
fn band(
    out: &mut String,
    number: usize,
    there: &[(f64, &EstimatedValue)],
    y: &impl Fn(f64) -> f64,
) -> fmt::Result {
    if let [(x, figure)] = there {
        let (low, high) = figure.bounds();
        return writeln!(
            out,
            "<line class=\"line c{number}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
            y(low),
            y(high)
        );
    }
    let upper = there.iter().map(|(x, figure)| (x, figure.bounds().1));
    let lower = there.iter().rev().map(|(x, figure)| (x, figure.bounds().0));
    let points = upper.chain(lower).map(|(x, value)| format!("{x:.1},{:.1}", y(value)));
    writeln!(
        out,
        "<polygon class=\"band c{number}\" points=\"{}\"/>",
        points.collect::<Vec<_>>().join(" ")
    )
}

/// Draws a line's own mark, since not everybody can distinguish colours, and paper has none.
fn mark(out: &mut String, number: usize, x: f64, y: f64) -> fmt::Result {
    let class = format!("class=\"dot c{number}\"");
    let polygon = |points: &[(f64, f64)]| {
        let points = points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy));
        let points = points.collect::<Vec<_>>().join(" ");
        format!("<polygon {class} points=\"{points}\"/>")
    };
    let shape = match number % 8 {
        0 => format!("<circle {class} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"),
        1 => polygon(&[(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)]),
        2 => polygon(&[(0.0, -4.6), (4.3, 3.4), (-4.3, 3.4)]),
        3 => polygon(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
        4 => polygon(&[(0.0, 4.6), (4.3, -3.4), (-4.3, -3.4)]),
        5 => format!(
            "<circle class=\"dot hollow c{number}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"
        ),
        6 => polygon(&[(-4.6, -1.7), (4.6, -1.7), (4.6, 1.7), (-4.6, 1.7)]),
        _ => polygon(&[(-1.7, -4.6), (1.7, -4.6), (1.7, 4.6), (-1.7, 4.6)]),
    };
    out.write_str(&shape)
}

fn table(out: &mut String, lines: &LineGraph) -> fmt::Result {
    write!(
        out,
        "<details><summary>Figures</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">{}</th>",
        EscapedText(&lines.across)
    )?;
    for line in &lines.series {
        write!(out, "<th scope=\"col\" class=\"number\">{}</th>", EscapedText(&line.name))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for (at, place) in lines.places.iter().enumerate() {
        write!(out, "<tr><th scope=\"row\">{}</th>", EscapedText(&place.name))?;
        for line in &lines.series {
            let figure = line.figures.get(at).copied().flatten();
            let shown = figure.map_or("-".to_owned(), |figure| figure.words());
            write!(out, "<td class=\"number\">{shown}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div></details>")
}
