//! Figures of two axes: a table whose cells have the more colour the better they are.

use std::fmt::{self, Write as _};

use luc_units::number_formats::digits;

use super::MatrixGraph;
use crate::html_escape::EscapedText;

pub(super) fn write(out: &mut String, matrix: &MatrixGraph) -> fmt::Result {
    write!(
        out,
        "<div class=\"plate\"><h3>{}</h3><div class=\"scroll\"><table class=\"matrix cells\"><thead><tr>\
         <th scope=\"col\">{}</th>",
        EscapedText(&matrix.title),
        EscapedText(&matrix.row)
    )?;
    for column in &matrix.columns {
        write!(out, "<th scope=\"col\" class=\"number\">{}</th>", EscapedText(column))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for (name, cells) in &matrix.rows {
        write!(out, "<tr><th scope=\"row\">{}</th>", EscapedText(name))?;
        for cell in cells {
            let Some(cell) = cell else {
                write!(out, "<td>-</td>")?;
                continue;
            };
            let share = cell.share.clamp(0.0, 1.0) * 100.0;
            let class = if cell.is_best { "heat best" } else { "heat" };
            write!(
                out,
                "<td class=\"{class}\" style=\"--heat:{share:.0}%\"><b>{}</b>",
                digits(cell.figure.value)
            )?;
            if cell.is_best {
                write!(out, " <span class=\"tag\">best</span>")?;
            }
            if let Some((low, high)) = cell.figure.interval {
                write!(out, "<small>{} to {}</small>", digits(low), digits(high))?;
            }
            if !cell.note.is_empty() {
                write!(out, "<small>{}</small>", EscapedText(&cell.note))?;
            }
            write!(out, "</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div></div>")
}
