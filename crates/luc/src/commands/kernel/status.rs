//! `luc kernel status`: journals, their settings and figures.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use luc_gate::inspect::filesystem;
use luc_module::setting_leases::SettingLeases;
use luc_module::stats_table::{StatsRow, StatsTable};
use luc_module::{
    BlockDeviceNumber, JournalSettings, JournalStats, LucModule, MachinePaths, ModuleJournal,
    SettingKey,
};
use luc_units::parse_duration_ns;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Interval between two checks for an interrupt.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Show what the module does on each journal
///
/// Figures count from the loading of the module or the mount; with --watch, from the refresh before. HELD is the
/// number of held commits and the mean time of each. DELAYED is the number of writes that waited for a commit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc kernel status
  luc kernel status --watch=5s
  luc kernel status --json | jq '.journals[] | [.mount_point, .fsyncs_per_commit]'")]
pub(super) struct Args {
    /// Print JSON; with --watch one line per refresh
    #[arg(long)]
    json: bool,
    /// Refresh every TIME until Ctrl-C [default: 1s]
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s"
    )]
    watch: Option<String>,
}

/// Writes numeric settings as JSON numbers.
fn with_numbers<S: serde::Serializer>(
    settings: &JournalSettings,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|(key, value)| {
        let number = value.parse::<u64>().map(serde_json::Value::from);
        (key, number.unwrap_or_else(|_| value.into()))
    }))
}

/// The heading above the figures.
struct Head {
    /// The start of the figures; `None` for the module's or the mount's beginning.
    interval: Option<Duration>,
    /// Whether these figures overwrite the ones before.
    in_place: bool,
}

impl Head {
    fn once() -> Self {
        Self { interval: None, in_place: false }
    }
}

/// The state of the module and its journals, as JSON.
#[derive(Debug, Serialize)]
struct Status {
    version: String,
    interface: u32,
    /// Whether the kernel's type information (BTF) confirmed jbd2's structures.
    is_layout_checked: bool,
    /// Whether the module has been tested on this kernel.
    is_kernel_tested: bool,
    journals: Vec<JournalStatus>,
}

#[derive(Debug, Serialize)]
struct JournalStatus {
    journal: String,
    device: BlockDeviceNumber,
    mount_point: Option<String>,
    /// Process ids of the runs that lend its settings.
    lent: usize,
    #[serde(serialize_with = "with_numbers")]
    settings: JournalSettings,
    fsyncs_per_commit: Option<f64>,
    /// `None` if this user may not read them.
    stats: Option<JournalStats>,
}

pub(super) fn main(machine: &MachinePaths, args: &Args) -> anyhow::Result<ExitCode> {
    let Some(interval) = &args.watch else {
        show(&look(machine, &mut BTreeMap::new())?, args.json, &Head::once())?;
        return Ok(ExitCode::SUCCESS);
    };
    let interval = Duration::from_nanos(parse_duration_ns(interval)?);
    if !(Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&interval) {
        bail!("--watch: give a time from 100ms to 3600s");
    }
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .context("signals cannot be handled")?;
    }
    let mut before = BTreeMap::new();
    let mut due = Instant::now();
    let mut head = Head { in_place: stdout().is_terminal(), ..Head::once() };
    loop {
        show(&look(machine, &mut before)?, args.json, &head)?;
        head.interval = Some(interval);
        due += interval;
        while Instant::now() < due {
            if ended.load(Ordering::Relaxed) {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(CHECK_INTERVAL.min(due.saturating_duration_since(Instant::now())));
        }
    }
}

/// Reads all journals, with figures since those in `before`, which the current ones replace.
fn look(
    machine: &MachinePaths,
    before: &mut BTreeMap<String, JournalStats>,
) -> anyhow::Result<Status> {
    let module = LucModule::open(machine)?;
    let leases = SettingLeases::of(machine);
    let mut now = BTreeMap::new();
    let mut journals = Vec::new();
    for journal in module.journals()? {
        // A journal unmounted since the listing is left out.
        let Ok((settings, stats)) = read(&journal) else {
            continue;
        };
        let since = stats.map(|stats| {
            let since = before
                .get(&journal.name)
                .map_or_else(|| stats.clone(), |earlier| stats.since(earlier));
            now.insert(journal.name.clone(), stats);
            since
        });
        let BlockDeviceNumber { major, minor } = journal.device;
        let mounted = filesystem::of_device(major, minor).ok();
        journals.push(JournalStatus {
            lent: leases.of_journal(&journal).len(),
            mount_point: mounted.map(|found| found.mount_point.display().to_string()),
            device: journal.device,
            journal: journal.name,
            settings,
            fsyncs_per_commit: since.as_ref().and_then(JournalStats::fsyncs_per_commit),
            stats: since,
        });
    }
    *before = now;
    Ok(Status {
        version: module.version,
        interface: luc_module::INTERFACE,
        is_layout_checked: module.is_layout_checked,
        is_kernel_tested: module.is_kernel_tested,
        journals,
    })
}

fn read(
    journal: &ModuleJournal,
) -> Result<(JournalSettings, Option<JournalStats>), luc_module::Error> {
    Ok((journal.settings()?, journal.stats()?))
}

fn show(status: &Status, json: bool, head: &Head) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    if json {
        serde_json::to_writer(&mut out, status).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    if head.in_place {
        // Moves to the upper left corner and clears the screen below.
        write!(out, "\x1b[H\x1b[J")?;
    }
    write!(out, "luc.ko {}, interface {}", status.version, status.interface)?;
    match head.interval {
        Some(interval) => writeln!(out, "; in the last {} s", interval.as_secs_f64())?,
        None => writeln!(out)?,
    }
    if !status.is_kernel_tested {
        writeln!(out, "WARNING: luc.ko has not been tested on this kernel (tested: 6.1 to 7.3)")?;
    }
    if !status.is_layout_checked {
        writeln!(
            out,
            "WARNING: this kernel has no type information (BTF) of jbd2, so luc.ko could not compare its structures"
        )?;
    }
    if status.journals.is_empty() {
        writeln!(out, "it knows no journal: no ext4 file system with one is mounted")?;
        return Ok(out.flush()?);
    }
    let word = |journal: &JournalStatus, key| {
        let value = journal.settings.get(key);
        value.unwrap_or_default().to_owned()
    };
    let rows: Vec<StatsRow> = status
        .journals
        .iter()
        .map(|journal| StatsRow {
            mount_point: journal.mount_point.clone().unwrap_or_else(|| "-".to_owned()),
            journal: journal.journal.clone(),
            policy: word(journal, SettingKey::Policy),
            copy_out: word(journal, SettingKey::CopyOut),
            lent: journal.lent,
            stats: journal.stats.clone(),
        })
        .collect();
    write!(out, "{}", StatsTable(&rows))?;
    Ok(out.flush()?)
}
