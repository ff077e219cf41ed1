//! Tables: heads and rows.

use std::fmt::{self, Display, Write as _};

use luc_explain::CallTimeParts;

use super::charts;

/// A column's title, by the kind of its cells.
#[derive(Clone, Copy)]
pub(super) enum HtmlColumn {
    Text(&'static str),
    Number(&'static str),
    Bars(&'static str),
}

/// Begins a table. `class` is that of the table, or empty.
pub(super) fn begin(out: &mut String, class: &str, columns: &[HtmlColumn]) -> fmt::Result {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    write!(out, "<div class=\"scroll\"><table{class}><thead><tr>")?;
    for column in columns {
        match column {
            HtmlColumn::Text(title) => write!(out, "<th scope=\"col\">{title}</th>")?,
            HtmlColumn::Number(title) => {
                write!(out, "<th scope=\"col\" class=\"number\">{title}</th>")?
            }
            HtmlColumn::Bars(title) => {
                write!(out, "<th scope=\"col\" class=\"wide\">{title}</th>")?
            }
        }
    }
    writeln!(out, "</tr></thead><tbody>")
}

pub(super) fn end(out: &mut String) {
    out.push_str("</tbody></table></div>\n");
}

/// A row that is being written. Cells are markup.
pub(super) struct HtmlRow<'a>(&'a mut String);

impl<'a> HtmlRow<'a> {
    pub(super) fn begin(out: &'a mut String) -> Self {
        out.push_str("<tr>");
        Self(out)
    }

    fn cell(self, open: &str, content: impl Display, close: &str) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{open}{content}{close}");
        self
    }

    pub(super) fn head(self, content: impl Display) -> Self {
        self.cell("<th scope=\"row\">", content, "</th>")
    }

    pub(super) fn text(self, content: impl Display) -> Self {
        self.cell("<td>", content, "</td>")
    }

    pub(super) fn number(self, content: impl Display) -> Self {
        self.cell("<td class=\"number\">", content, "</td>")
    }

    pub(super) fn wide(self, content: impl Display) -> Self {
        self.cell("<td class=\"wide\">", content, "</td>")
    }

    /// Writes a bar that is divided by parts.
    pub(super) fn parts(self, parts: &CallTimeParts) -> Self {
        let mut bar = String::new();
        // Writing to a string cannot fail.
        let _ = charts::stacked(&mut bar, parts);
        self.wide(bar)
    }

    pub(super) fn end(self) {
        self.0.push_str("</tr>\n");
    }
}
