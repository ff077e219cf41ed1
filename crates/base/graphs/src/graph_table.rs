//! Tables with coloured entries.

use std::fmt::{self, Write as _};

use super::GraphTable;
use crate::html_escape::EscapedText;

pub(super) fn write(out: &mut String, table: &GraphTable) -> fmt::Result {
    write!(out, "<h3>{}</h3><div class=\"scroll\"><table><thead><tr>", EscapedText(&table.title))?;
    for (name, is_number) in &table.columns {
        let class = if *is_number { " class=\"number\"" } else { "" };
        write!(out, "<th scope=\"col\"{class}>{}</th>", EscapedText(name))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in &table.rows {
        write!(out, "<tr>")?;
        for (at, (entry, (_, is_number))) in row.iter().zip(&table.columns).enumerate() {
            let text = EscapedText(&entry.text);
            if at == 0 {
                write!(out, "<th scope=\"row\">{text}</th>")?;
                continue;
            }
            let class = if *is_number { "number" } else { "" };
            match entry.heat.filter(|heat| heat.is_finite()) {
                Some(heat) => {
                    let side = if heat < 0.0 { "less" } else { "more" };
                    let percent = heat.abs().min(1.0) * 100.0;
                    write!(
                        out,
                        "<td class=\"{class} tint {side}\" style=\"--heat:{percent:.0}%\">{text}</td>"
                    )?;
                }
                None => write!(out, "<td class=\"{class}\">{text}</td>")?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")?;
    if table.more > 0 {
        writeln!(out, "<p class=\"quiet\">{} more are not shown here.</p>", table.more)?;
    }
    Ok(())
}
