//! The files that `luc-fleet report` writes: which format goes to which.

use std::process::ExitCode;

use luc_fleet::report::{Chosen, Report, ReportError, html, otlp, perfetto};
use luc_fleet::{Joined, Tables};
use luc_host::interrupt;
use luc_report::output::{Target, Writer};

use crate::Failure;
use crate::arguments;

/// The exit status after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

#[derive(Debug, Clone, Copy)]
enum Format {
    Html,
    Perfetto,
    Otlp,
}

impl Format {
    fn write(self, report: &Report<'_>, out: Writer) -> Result<(), ReportError> {
        match self {
            Self::Html => html::write(report, out),
            Self::Perfetto => perfetto::write(report, out),
            Self::Otlp => otlp::write(report, out),
        }
    }
}

pub(crate) fn write(args: arguments::Report) -> Result<ExitCode, Failure> {
    // What cannot be written is said before the traces are read.
    let chosen = chosen(&args)?;
    let spans = args.spans.read()?;
    let joined = Joined::read(&args.sources, Tables::All, args.span.window())?.with_spans(spans);
    let report = Report::new(&joined, Chosen { request: args.request, slowest: args.slowest })?;
    // From here on there are files to be removed.
    interrupt::install()?;
    let mut outputs = Vec::new();
    for (format, target) in chosen {
        let (output, writer) = target.begin()?;
        format.write(&report, writer)?;
        outputs.push(output);
        if interrupt::interrupted() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    for output in outputs {
        if let Some(written) = output.put()? {
            eprintln!("luc-fleet: {}", luc_units::plain(&written.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The formats to write, and where to.
fn chosen(args: &arguments::Report) -> Result<Vec<(Format, Target)>, Failure> {
    let asked = [
        (Format::Html, &args.html),
        (Format::Perfetto, &args.perfetto),
        (Format::Otlp, &args.otlp),
    ];
    let mut chosen: Vec<(Format, Target)> = Vec::new();
    for (format, path) in asked {
        let Some(path) = path else { continue };
        let target = Target::new(path)?;
        if chosen.iter().any(|(_, other)| *other == target) {
            return Err(Failure::SameFile(path.clone()));
        }
        chosen.push((format, target));
    }
    Ok(chosen)
}
