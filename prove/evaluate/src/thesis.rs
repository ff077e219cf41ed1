//! The thesis' figures as one sweep in virtual time, and which of its claims hold on this kernel.
//!
//! The plan is `docs/evaluation/plans/thesis.toml`. `data` has the sweep's figures, `finding` sets a claim against them,
//! `chapter3` to `chapter5` have the claims and tables of the thesis' chapters, `raw` is what is kept.

mod chapter3;
mod chapter4;
mod chapter5;
mod data;
mod finding;
mod raw;
mod tables;

use std::path::Path;
use std::time::Instant;

use luc_sweep::Plan;

use super::progress::Progress;
use super::report::{Page, Table, Target};
use super::{EvaluateError, Options, machine};
use data::Data;
use finding::{Finding, Verdict};

/// The plan.
const PLAN: &str = include_str!("../../../docs/evaluation/plans/thesis.toml");
const PLAN_NAME: &str = "docs/evaluation/plans/thesis.toml";

/// Runs what the sweep lacks, as far as the budget goes, and makes the page of all that is there. Also the sentence on
/// what it was made with.
pub(super) fn run(options: &Options) -> Result<(Page, String), EvaluateError> {
    let mut plan = Plan::parse(PLAN, Path::new(PLAN_NAME))?;
    plan.set_jobs(options.jobs)?;
    if let Some(budget) = options.budget {
        plan.set_deadline(Instant::now() + budget);
    }
    let folder = options.myself.with_file_name("thesis.sweep");
    let mut progress: Option<Progress> = None;
    let report = luc_sweep::run(
        &plan,
        &folder,
        &options.luc,
        Path::new("/sys"),
        &mut |made, wanted, what| match &mut progress {
            Some(progress) => progress.step(what),
            None => progress = Some(Progress::new("thesis", wanted - made)),
        },
    )?;
    drop(progress);
    if report.interrupted {
        return Err(EvaluateError::Interrupted);
    }
    if report.repeats.is_empty() {
        return Err(EvaluateError::NoTime);
    }
    let virtual_time = plan.virtual_time.as_ref();
    let (speeds, repeats) =
        virtual_time.map_or((&[][..], 0), |time| (&time.mips[..], time.repeats));
    let data = Data::new(speeds, &report.repeats);
    let wanted = report.points.len() * repeats;
    let kernel = report
        .repeats
        .first()
        .map_or("-", |record| &*record.environment.kernel);
    raw::write(&options.out.join("raw/thesis.json"), kernel, &data)?;
    let sentence = format!(
        "Made up to {} from `plans/thesis.toml` with Linux {kernel} in QEMU; {} of {wanted} repeats are there. \
         `luc sweep` runs the same plan.",
        machine::now()?,
        report.repeats.len(),
    );
    Ok((page(&data), sentence))
}

fn page(data: &Data) -> Page {
    let findings: Vec<Finding> = [
        chapter3::findings(data),
        chapter4::findings(data),
        chapter5::findings(data),
    ]
    .concat();
    let mut tables = vec![(verdicts(&findings), table(&findings))];
    tables.extend(chapter3::tables(data));
    tables.extend(chapter4::tables(data));
    tables.extend(chapter5::tables(data));
    tables.retain(|(_, table)| !table.is_empty());
    Page {
        title: "The thesis' figures in virtual time".to_owned(),
        about: ABOUT.to_owned(),
        tables,
        targets: targets(data, &findings),
    }
}

const ABOUT: &str = "One sweep rebuilds the thesis' figures 3.1 to 3.6, 4.10, 4.11 and 5.8 to 5.15 on an unmodified \
    Linux 6.1 whose jbd2 is served by luc.ko. Its machines were quad-cores of 1.6 to 3.3 GHz with a 7200 rpm disk and \
    kernel 3.4.2; here a guest has **one processor in virtual time** (QEMU counts instructions; a repeat gives the same \
    bytes on a busy host) of 1000 to 2060 million instructions per second: the same ratio, and a table's head has the \
    thesis' GHz beside it. The disk, `lagdisk`, is not a disk that seeks: a write takes 8 ms (about a revolution), a \
    flush 2 ms, a read 0.1 ms, exactly, and requests do not queue behind each other. A speed is made by stretching the \
    disk's, the module's, the scheduler's and the workload's times, and scaling the results back; only the kernel's tick \
    (4 ms) is not stretched.\n\n\
    Since nothing is random, a repeat is another seed, another order of the points in the guest and another phase \
    against the kernel's tick. There are three of each point, which give no 95 % interval: in parentheses is their \
    **range**. Speedups are medians of ratios of the same round. A fall counts as sure if every repeat at the faster \
    speed is below every one at the slower; changes below 3 % are taken for noise.\n\n\
    Metarates has N clients that start together, create one file each in one directory, sync and close it, in 12 rounds \
    on a journal at rest; its rate is the thesis', N / mean(T_open + T_fsync + T_close). IOzone is the initial write of \
    256 threads, the sum of the children's own rates: on one processor nearly all of a child's records are written in \
    one go, so that its rate is that of memory unless a commit blocks it, and the sum counts those that none blocked. \
    Write delays are changes of metadata that waited for a commit to write them, those in fsync and in creating files \
    included. varMail has 256 files of 1 KiB, oltp 48 writers on 48 files and a \
    log writer. `ext4` is stock with the module loaded but off, so that it counts; `delayJC` waits 1 ms (16 ms for \
    IOzone and oltp), `PID batching` and `heuristic copy-out` have the paper's parameters, `LUC` is both, `auto` is the \
    module's own. **NOJC (ext4 without a journal) and NOFSYNC (fsyncs left out) are UNSAFE**: they isolate a cause and \
    are nothing to run. (Without a journal this kernel's fsync of a new, empty file writes nothing, so that for Metarates \
    NOJC is as NOFSYNC.) [kernel](kernel.md) has the same workloads as closed loops, at nine speeds over a factor of 4.";

fn verdicts(findings: &[Finding]) -> String {
    let count = |verdict| findings.iter().filter(|f| f.verdict == verdict).count();
    format!(
        "What the thesis says and what was found. {} of {} claims agree, {} in part, {} do not. The cause is the likely \
         one:",
        count(Verdict::Agrees),
        findings.len(),
        count(Verdict::Partly),
        count(Verdict::DoesNot)
    )
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::of_words(&["figure", "the thesis", "here", "verdict", "likely cause"]);
    for finding in findings {
        table.row(vec![
            finding.figure.to_owned(),
            finding.says.to_owned(),
            finding.found.clone(),
            finding.verdict.name().to_owned(),
            finding.cause.to_owned(),
        ]);
    }
    table
}

fn targets(data: &Data, findings: &[Finding]) -> Vec<Target> {
    let speeds = &data.speeds;
    let ratio = speeds.last().zip(speeds.first());
    let ratio = ratio.map(|(last, first)| *last as f64 / *first as f64);
    let measured = findings
        .iter()
        .filter(|f| f.verdict != Verdict::NotMeasured);
    let measured = measured.count();
    vec![
        Target::at_least("speeds", Some(speeds.len() as f64), 7.0),
        Target::at_least("the fastest speed over the slowest", ratio, 2.06),
        Target::new(
            "every claim has figures",
            measured == findings.len(),
            format!("{measured} of {}", findings.len()),
        ),
    ]
}
