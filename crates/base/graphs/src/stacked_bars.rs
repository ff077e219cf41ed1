//! Bars divided into parts, and a table of the parts' shares.

use std::fmt::{self, Write as _};

use super::{MOST_SERIES, StackedBar, StackedBars};
use crate::html_escape::EscapedText;

/// Number of bars above which the shares are folded up.
const MAX_OPEN: usize = 8;

pub(super) fn write(out: &mut String, stacks: &StackedBars) -> fmt::Result {
    let longest = stacks.rows.iter().map(sum).fold(0.0, f64::max);
    write!(
        out,
        "<h3>{}</h3><div class=\"scroll\"><table class=\"stacks\"><thead><tr><th scope=\"col\">{}</th>\
         <th scope=\"col\" class=\"number\">{}</th>",
        EscapedText(&stacks.title),
        EscapedText(&stacks.row),
        EscapedText(&stacks.unit)
    )?;
    writeln!(
        out,
        "<th scope=\"col\" class=\"wide\" aria-hidden=\"true\"></th></tr></thead><tbody>"
    )?;
    for row in &stacks.rows {
        let whole = if stacks.is_of_one_scale { longest } else { sum(row) };
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"wide\" aria-hidden=\"true\">\
             <div class=\"stack\">",
            EscapedText(&row.name),
            EscapedText(&row.note)
        )?;
        for (number, class) in stacks.classes.iter().enumerate() {
            let part = part(row, number);
            if part > 0.0 {
                write!(
                    out,
                    "<i class=\"fill c{}\" style=\"width:{:.3}%\" title=\"{}: {:.1} %\"></i>",
                    number % MOST_SERIES,
                    part / whole * 100.0,
                    EscapedText(class),
                    part / sum(row) * 100.0
                )?;
            }
        }
        writeln!(out, "</div></td></tr>")?;
    }
    writeln!(out, "</tbody></table></div>")?;
    shares(out, stacks)
}

/// Writes the parts' shares, a row for each part. This is the legend, too.
fn shares(out: &mut String, stacks: &StackedBars) -> fmt::Result {
    let is_long = stacks.rows.len() > MAX_OPEN;
    if is_long {
        super::legend(out, &stacks.classes)?;
        write!(out, "<details><summary>shares of {} rows</summary>", stacks.rows.len())?;
    }
    write!(
        out,
        "<div class=\"scroll\"><table class=\"parts-of\"><thead><tr><th scope=\"col\">share of the time</th>"
    )?;
    for row in &stacks.rows {
        write!(out, "<th scope=\"col\" class=\"number\">{}</th>", EscapedText(&row.name))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for (number, class) in stacks.classes.iter().enumerate() {
        // A part that no bar has gets no row.
        if !stacks.rows.iter().any(|row| part(row, number) > 0.0) {
            continue;
        }
        write!(
            out,
            "<tr><th scope=\"row\"><i class=\"key fill c{}\"></i>{}</th>",
            number % MOST_SERIES,
            EscapedText(class)
        )?;
        for row in &stacks.rows {
            match part(row, number) {
                part if part > 0.0 => {
                    write!(out, "<td class=\"number\">{:.1} %</td>", part / sum(row) * 100.0)?
                }
                _ => write!(out, "<td class=\"number\">-</td>")?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    let end = if is_long { "</details>" } else { "" };
    writeln!(out, "</tbody></table></div>{end}")
}

/// Returns a part of a bar; 0 if it is missing.
fn part(row: &StackedBar, number: usize) -> f64 {
    let part = row.parts.get(number).copied().unwrap_or(0.0);
    if part.is_finite() { part.max(0.0) } else { 0.0 }
}

fn sum(row: &StackedBar) -> f64 {
    (0..row.parts.len()).map(|number| part(row, number)).sum()
}
