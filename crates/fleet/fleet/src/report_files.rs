//! Writes the files of `luc-fleet report`.

use std::process::ExitCode;

use luc_fleet::report::{ReportError, ReportSelection, ReportSource, html, otlp, perfetto};
use luc_fleet::{JoinedTraces, TablesToRead};
use luc_host::interrupt_flag;
use luc_report::atomic_file::{AtomicFileWriter, OutputTarget};

use crate::Failure;
use crate::arguments;

/// Exit status after Ctrl-C.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, Clone, Copy)]
enum Format {
    Html,
    Perfetto,
    Otlp,
}

impl Format {
    fn write(self, report: &ReportSource<'_>, out: AtomicFileWriter) -> Result<(), ReportError> {
        match self {
            Self::Html => html::write(report, out),
            Self::Perfetto => perfetto::write(report, out),
            Self::Otlp => otlp::write(report, out),
        }
    }
}

pub(crate) fn write(args: arguments::FleetReportArgs) -> Result<ExitCode, Failure> {
    // Mistakes in outputs are reported before the traces are read.
    let targets = choose_targets(&args)?;
    let spans = args.spans.read()?;
    let joined =
        JoinedTraces::read(&args.sources, TablesToRead::All, args.span.window())?.with_spans(spans);
    let report = ReportSource::new(
        &joined,
        ReportSelection { request: args.request, slowest: args.slowest },
    )?;
    // From here on, an interrupt must remove files.
    interrupt_flag::install()?;
    let mut outputs = Vec::new();
    for (format, target) in targets {
        let (output, writer) = target.begin()?;
        format.write(&report, writer)?;
        outputs.push(output);
        if interrupt_flag::interrupted() {
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
    }
    for output in outputs {
        if let Some(written) = output.put()? {
            eprintln!("luc-fleet: {}", luc_units::plain(&written.to_string()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Chooses the formats to write, and their targets.
fn choose_targets(
    args: &arguments::FleetReportArgs,
) -> Result<Vec<(Format, OutputTarget)>, Failure> {
    let asked = [
        (Format::Html, &args.html),
        (Format::Perfetto, &args.perfetto),
        (Format::Otlp, &args.otlp),
    ];
    let mut chosen: Vec<(Format, OutputTarget)> = Vec::new();
    for (format, path) in asked {
        let Some(path) = path else { continue };
        let target = OutputTarget::new(path)?;
        if chosen.iter().any(|(_, other)| *other == target) {
            return Err(Failure::SameFile(path.clone()));
        }
        chosen.push((format, target));
    }
    Ok(chosen)
}
