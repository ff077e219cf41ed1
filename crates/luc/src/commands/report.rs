//! `luc report`: what `luc explain` found, as files for a browser, Perfetto, Prometheus and programs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressDrawTarget};
use luc_events::ring;
use luc_events::tables::TraceDescription;
use luc_report::ReportExports;
use luc_report::atomic_file::{AtomicFileWriter, OutputTarget};
use luc_report::html::HtmlWriter;
use luc_report::json::JsonWriter;
use luc_report::openmetrics::{OpenMetricsWriter, PrometheusWriter};
use luc_report::perfetto::PerfettoWriter;
use luc_report::text::PlainTextWriter;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{INTERRUPTED, styled};

/// Reading time after which progress is shown.
const PROGRESS_DELAY: Duration = Duration::from_secs(2);

/// Write a trace as a page for a browser, a Perfetto trace, metrics, JSON or text
///
/// The trace is read once for all formats. Each FILE appears only when it is complete; `-` is standard output.
/// Without an option, luc writes the page into the current directory, named after the trace. Needs no privileges.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc report mail.trace                       # makes mail.trace.html
  luc report mail.trace --html mail.html --perfetto mail.pftrace
  luc report mail.trace --prometheus /var/lib/node_exporter/luc.prom
  luc report mail.trace --json - | jq '.findings[0]'

Open the page in any browser: it is one file and loads nothing. Open the Perfetto trace with
https://ui.perfetto.dev, which keeps it in the browser.

Exit status: 0; 2 if the trace cannot be read or a file not written; 130 after Ctrl-C, with nothing written.")]
pub(crate) struct Args {
    /// Directory of the trace, as made by luc record; of a ring its last run is shown
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Write one page with findings, timelines, distributions, blame and accounts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write every call, wait and commit as a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Write figures per file system, cgroup and finding as OpenMetrics text
    #[arg(long, value_name = "FILE")]
    openmetrics: Option<PathBuf>,

    /// Write the same in Prometheus' text format, for node_exporter, pushgateways and promtool
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,

    /// Write the output of luc explain --json
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the output of luc explain
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .context("signals cannot be caught")?;
    }
    let chosen = chosen(&args)?;
    let reader = ring::open(&args.trace)?;
    let mut exports = ReportExports::new(progress(Arc::clone(&interrupted)));
    let mut outputs = Vec::new();
    for (format, target) in chosen {
        let (output, writer) = target.begin()?;
        outputs.push(output);
        format.add(reader.trace(), writer, &mut exports);
    }
    let report = luc_explain::explain_with(&reader, &mut exports)?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    exports.finish(&report).context("the report cannot be written; check the space left")?;
    for output in outputs {
        if let Some(written) = output.put()? {
            eprintln!("luc: {written}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Html,
    Perfetto,
    OpenMetrics,
    Prometheus,
    Json,
    Text,
}

impl Format {
    fn add<'a>(
        self,
        trace: &TraceDescription,
        out: AtomicFileWriter,
        exports: &mut ReportExports<'a>,
    ) {
        match self {
            Self::Html => exports.add(HtmlWriter::new(trace, out)),
            Self::Perfetto => exports.add(PerfettoWriter::new(trace, out)),
            Self::OpenMetrics => exports.add(OpenMetricsWriter(out)),
            Self::Prometheus => exports.add(PrometheusWriter(out)),
            Self::Json => exports.add(JsonWriter(out)),
            Self::Text => exports.add(PlainTextWriter(out)),
        }
    }
}

/// The formats to write, and their files.
fn chosen(args: &Args) -> anyhow::Result<Vec<(Format, OutputTarget)>> {
    let asked = [
        (Format::Html, &args.html),
        (Format::Perfetto, &args.perfetto),
        (Format::OpenMetrics, &args.openmetrics),
        (Format::Prometheus, &args.prometheus),
        (Format::Json, &args.json),
        (Format::Text, &args.text),
    ];
    let mut chosen: Vec<(Format, OutputTarget)> = Vec::new();
    for (format, path) in asked {
        let Some(path) = path else { continue };
        let target = OutputTarget::new(path)?;
        if chosen.iter().any(|(_, other)| *other == target) {
            bail!("{}: two formats cannot go to one file; name another one", path.display());
        }
        chosen.push((format, target));
    }
    if chosen.is_empty() {
        chosen.push((Format::Html, OutputTarget::new(&page_of(&args.trace)?)?));
    }
    Ok(chosen)
}

fn page_of(trace: &Path) -> anyhow::Result<PathBuf> {
    let whole = trace.canonicalize().with_context(|| {
        format!(
            "{}: no trace is here; name a directory that `luc record --out` wrote",
            trace.display()
        )
    })?;
    let mut name = whole
        .file_name()
        .with_context(|| format!("{}: name the page by --html FILE", trace.display()))?
        .to_owned();
    name.push(".html");
    Ok(PathBuf::from(name))
}

/// Shows how far the reading is, once it has taken a while, and ends it after a signal.
fn progress(interrupted: Arc<AtomicBool>) -> luc_report::export::ReadProgress<'static> {
    let bar = styled(ProgressBar::hidden(), "{bar:30} {percent} % read, {eta} left");
    let began = Instant::now();
    Box::new(move |read, in_all| {
        if bar.is_hidden() && began.elapsed() >= PROGRESS_DELAY {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_length(in_all);
        bar.set_position(read);
        if interrupted.load(Ordering::Relaxed) {
            bar.finish_and_clear();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })
}
