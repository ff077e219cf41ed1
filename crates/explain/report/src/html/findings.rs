//! Findings with their evidence and remedies, and warnings.

use std::fmt::{self, Write as _};

use luc_events::Dev;
use luc_explain::{Actor, Finding, Remedy, TraceReport, WarningKind};
use luc_graphs::html_escape::EscapedText;
use luc_units::number_formats::{FormattedShare, FormattedTime};

use super::name_meanings;
use crate::evidence_text::evidence;

/// Maximum number of findings, and of warnings, that are shown.
const MAX_SHOWN: usize = 40;

pub(super) fn section(out: &mut String, report: &TraceReport) -> fmt::Result {
    writeln!(out, "<section id=\"findings\"><h2>Findings</h2>")?;
    if report.findings.is_empty() {
        writeln!(out, "<p class=\"empty\">None: no call on a file system is in the trace.</p>")?;
    }
    let shown = report.findings.iter().take(MAX_SHOWN);
    for (index, found) in shown.enumerate() {
        finding(out, report, index + 1, found)?;
    }
    super::wait_tables::more(out, report.findings.len(), MAX_SHOWN)?;
    let others: Vec<&Remedy> = report
        .remedies
        .iter()
        .filter(|remedy| !report.findings.iter().any(|found| fits(remedy, found)))
        .take(MAX_SHOWN)
        .collect();
    if !others.is_empty() {
        writeln!(out, "<h3>What else would help</h3>")?;
        remedies(out, &others)?;
    }
    writeln!(out, "</section>")?;
    warnings(out, report)
}

fn fits(remedy: &Remedy, found: &Finding) -> bool {
    remedy.against == found.kind && remedy.dev == found.dev
}

fn finding(out: &mut String, report: &TraceReport, number: usize, found: &Finding) -> fmt::Result {
    let share = FormattedShare(if found.share.is_finite() { found.share } else { 0.0 });
    writeln!(
        out,
        "<article class=\"finding\" data-finding=\"{}\"><header><span class=\"rank\">{number}</span><div>\
         <h3>{}</h3><p class=\"kind\"><span class=\"tag\">{}</span>",
        found.kind.name(),
        EscapedText(&found.sentence),
        name_meanings::finding(found.kind),
    )?;
    if let Some(dev) = found.dev {
        write!(out, "<span>{}</span>", place(report, dev))?;
    }
    for (role, actor) in [("lost most", &found.victim), ("whose work", &found.culprit)] {
        if let Some(actor) = actor {
            write!(out, "<span>{role}: <b>{}</b></span>", who(actor))?;
        }
    }
    writeln!(
        out,
        "</p></div><div class=\"cost\"><strong>{share}</strong><span class=\"quiet\">{} of thread time</span>\
         <span class=\"meter\"><i style=\"width:{:.1}%\"></i></span></div></header>",
        FormattedTime::from(found.cost_ns),
        share.0.clamp(0.0, 1.0) * 100.0
    )?;
    writeln!(out, "<div class=\"columns\">")?;
    if !found.evidence.is_empty() {
        writeln!(out, "<div><h4>Evidence</h4><table class=\"plain\"><tbody>")?;
        for figure in &found.evidence {
            writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td></tr>",
                EscapedText(figure.what),
                evidence(figure)
            )?;
        }
        writeln!(out, "</tbody></table></div>")?;
    }
    let fitting: Vec<&Remedy> =
        report.remedies.iter().filter(|remedy| fits(remedy, found)).take(MAX_SHOWN).collect();
    if !fitting.is_empty() {
        writeln!(out, "<div><h4>What would help, and loses no data</h4>")?;
        remedies(out, &fitting)?;
        writeln!(out, "</div>")?;
    }
    writeln!(out, "</div></article>")
}

fn remedies(out: &mut String, remedies: &[&Remedy]) -> fmt::Result {
    writeln!(out, "<ul class=\"remedies\">")?;
    for remedy in remedies {
        let gain = match name_meanings::gain(remedy) {
            Some(gain) => format!("<span class=\"gain\">{gain}</span>"),
            None => "<span class=\"gain none\">not predicted</span>".to_owned(),
        };
        writeln!(
            out,
            "<li>{gain}<span>{}<br><span class=\"quiet\">{}</span></span></li>",
            code(&remedy.sentence),
            EscapedText(remedy.basis)
        )?;
    }
    writeln!(out, "</ul>")
}

fn warnings(out: &mut String, report: &TraceReport) -> fmt::Result {
    if report.warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section id=\"warnings\"><h2>Beware</h2><ul class=\"warnings\">")?;
    for warning in report.warnings.iter().take(MAX_SHOWN) {
        let (class, word) = match warning.kind {
            WarningKind::LosesData => ("bad", "loses data"),
            WarningKind::MayLoseData => ("bad", "may lose data"),
            WarningKind::FolkAdvice => ("", "folk advice"),
            WarningKind::Incomplete => ("", "incomplete"),
        };
        writeln!(
            out,
            "<li><span class=\"tag {class}\">{word}</span><span>{}</span></li>",
            code(&warning.sentence)
        )?;
    }
    writeln!(out, "</ul>")?;
    super::wait_tables::more(out, report.warnings.len(), MAX_SHOWN)?;
    writeln!(out, "</section>")
}

/// Marks text between backquotes as code.
fn code(text: &str) -> String {
    let mut shown = String::new();
    for (index, piece) in text.split('`').enumerate() {
        // Writing to a string cannot fail.
        let _ = if index % 2 == 1 {
            write!(shown, "<code>{}</code>", EscapedText(piece))
        } else {
            write!(shown, "{}", EscapedText(piece))
        };
    }
    shown
}

pub(super) fn place(report: &TraceReport, dev: Dev) -> String {
    let mounted =
        report.file_systems.iter().find(|found| found.dev == dev && !found.mount_point.is_empty());
    match mounted {
        Some(found) => format!("{} ({dev})", EscapedText(&found.mount_point)),
        None => dev.to_string(),
    }
}

pub(super) fn who(actor: &Actor) -> String {
    if actor.comm.is_empty() {
        return format!("process {}", actor.process);
    }
    format!("{} ({})", EscapedText(&actor.comm), actor.process)
}
