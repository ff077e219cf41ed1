//! Prints why a thread does not run.

use std::fmt;

use luc_units::number_formats::FormattedTime;

use super::style::TextStyle;
use crate::why_command::{LinkReport, WhyReport};

pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    style: TextStyle,
    report: &WhyReport,
) -> fmt::Result {
    if let Some(first) = report.links.first() {
        let title = format!(
            "{}, {} after its trace began",
            label_thread(first),
            FormattedTime::from(report.after_ns)
        );
        style.title(f, &title)?;
    }
    let mut dependence = None;
    for link in &report.links {
        match dependence {
            None => writeln!(f, "  {}", describe(link))?,
            Some(why) => writeln!(
                f,
                "  because of {} ({why}), which {}",
                label_thread(link),
                describe(link)
            )?,
        }
        dependence = link.depends_on_next;
    }
    let again = report.back_to.and_then(|number| report.links.get(number));
    match (again, report.is_deadlock) {
        (Some(link), true) => writeln!(
            f,
            "  because of {} again: a deadlock, each has the lock that the one before waits for",
            label_thread(link)
        ),
        (Some(link), false) => writeln!(f, "  because of {} again", label_thread(link)),
        (None, _) => Ok(()),
    }
}

fn label_thread(link: &LinkReport) -> String {
    format!("{} {} on {}", link.name, link.thread, link.host)
}

fn describe(link: &LinkReport) -> String {
    let mut text = match link.what {
        "on a processor" => "is on a processor".to_owned(),
        "not known" => "has no row: what it does is not known".to_owned(),
        other => other.to_owned(),
    };
    if let Some(awaits) = link.awaits {
        text += match awaits {
            "work" => " for work",
            "answer" => " for an answer",
            _ => "",
        };
    }
    if let Some(cause) = link.cause {
        text += &format!(" ({cause})");
    }
    if let Some(for_ns) = link.for_ns {
        text += &format!(", for {} by then", FormattedTime::from(for_ns));
    } else if link.what == "waits" {
        text += ", since before the trace";
    }
    match link.left_ns {
        Some(left_ns) => text + &format!(" and {} more", FormattedTime::from(left_ns)),
        None if link.what == "waits" => text + " and beyond the trace's end",
        None => text,
    }
}
