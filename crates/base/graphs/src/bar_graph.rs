//! Bars with intervals: a table, whose last column is drawn.

use std::fmt::{self, Write as _};

use super::BarGraph;
use crate::html_escape::EscapedText;

/// Longer lists are folded up.
const MAX_OPEN: usize = 30;
/// Length from which on names take half of the width.
const MAX_NARROW_CHARS: usize = 60;

pub(super) fn write(out: &mut String, bars: &BarGraph) -> fmt::Result {
    let longest = |with_aside: bool| {
        let shown = bars.bars.iter().filter(|bar| with_aside || !bar.is_aside);
        let ends = shown.filter_map(|bar| Some(bar.figure?.bounds().1.max(bar.figure?.value)));
        ends.filter(|end| end.is_finite()).fold(0.0, f64::max)
    };
    let most = match longest(false) {
        most if most > 0.0 => most,
        _ => longest(true),
    };
    write!(out, "<h3>{}</h3>", EscapedText(&bars.title))?;
    let is_long = bars.bars.len() > MAX_OPEN;
    let is_wordy = bars.bars.iter().any(|bar| bar.name.len() > MAX_NARROW_CHARS);
    if is_long {
        write!(out, "<details><summary>{} rows</summary>", bars.bars.len())?;
    }
    writeln!(
        out,
        "<div class=\"scroll\"><table class=\"bars{}\"><thead><tr><th scope=\"col\">{}</th>\
         <th scope=\"col\" class=\"number\">{}</th><th scope=\"col\" class=\"wide\" aria-hidden=\"true\"></th>\
         </tr></thead><tbody>",
        if is_wordy { " wordy" } else { "" },
        EscapedText(&bars.row),
        EscapedText(&bars.unit)
    )?;
    for bar in &bars.bars {
        write!(out, "<tr><th scope=\"row\">{}", EscapedText(&bar.name))?;
        if !bar.remark.is_empty() {
            write!(out, " <span class=\"tag\">{}</span>", EscapedText(&bar.remark))?;
        }
        let Some(figure) = bar.figure.filter(|_| most > 0.0) else {
            writeln!(out, "</th><td class=\"number\">-</td><td class=\"wide\"></td></tr>")?;
            continue;
        };
        let percent = |value: f64| (value / most * 100.0).clamp(0.0, 100.0);
        let (low, high) = figure.bounds();
        write!(
            out,
            "</th><td class=\"number\">{}</td><td class=\"wide\" aria-hidden=\"true\"><div class=\"ruler\">\
             <i{} style=\"width:{:.2}%\"></i>",
            figure.words(),
            if figure.value > most { " class=\"cut\"" } else { "" },
            percent(figure.value)
        )?;
        if figure.interval.is_some() {
            write!(
                out,
                "<b style=\"left:{:.2}%;width:{:.2}%\"></b>",
                percent(low),
                percent(high) - percent(low)
            )?;
        }
        writeln!(out, "</div></td></tr>")?;
    }
    let end = if is_long { "</details>" } else { "" };
    writeln!(out, "</tbody></table></div>{end}")
}
