//! Part `kernels`: all of LUC on kernels of several distributions and years.

use std::time::Duration;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target};
use luc_vm::Mode;
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::guests::succeed;
use crate::harness::{Harness, count, elements, missing, parse};
use crate::progress::Progress;
use crate::runs::Runs;
use crate::safety::guest::{Guests, warnings};

/// Kernels, and their preemption modes in the runs for the gain. The first mode is the kernel's default.
const KERNELS: [(&str, &[&str]); 5] = [
    ("6.1", &["voluntary", "full"]),
    ("6.12", &["voluntary", "full"]),
    ("6.17", &["voluntary", "lazy", "full"]),
    ("7.0", &["lazy", "full"]),
    ("7.3", &["lazy", "full"]),
];
const CUTS: u64 = 30;
/// Number of synchronous writes of each of four writers, and of single-byte writes to each of four pipes.
const WRITES: u64 = 200;
const BYTES: u64 = 3000;
/// Number of runs of each policy in a boot, of 1.3 s each.
const ROUNDS: u64 = 3;
const CLIENTS: [u64; 2] = [4, 16];
/// Minimum ratio of files made with policy auto to those with policy off.
const MIN_GAIN: f64 = 0.95;
/// Timeout of a boot. A busy machine takes many times longer than an idle one.
const BOOT_TIMEOUT: Duration = Duration::from_secs(3600);

/// Returns the lines `NAME: VALUE` of a guest's output, in their order.
fn values(text: &str) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn functions(guests: &Guests, cuts: u64) -> Result<Value, EvaluateError> {
    let vm = guests
        .machine(BOOT_TIMEOUT)
        .program("mke2fs")
        .program("dd")
        .variable("CUTS", &cuts.to_string())
        .variable("WRITES", &WRITES.to_string())
        .variable("BYTES", &BYTES.to_string())
        .script(include_str!("../../../crates/luc/tests/e2e/kernels/guest.sh"));
    let outcome = succeed(&vm, "all of luc in a guest")?;
    let report = outcome.file("cuts.json").unwrap_or_default();
    let report: Value = parse(&report, "the report of luc powercut")?;
    Ok(json!({
        "said": values(&outcome.text()), "cuts": report, "warnings": warnings(&outcome), "wall_s": outcome.wall.as_secs(),
    }))
}

/// Measures the files per boot and policy, in virtual time.
fn gain(guests: &Guests, preemption: &str) -> Result<Value, EvaluateError> {
    let vm = guests
        .machine(BOOT_TIMEOUT)
        .program("mke2fs")
        .program("seq")
        .mode(Mode::VirtualTime { shift: 0, processors: 1 })
        .kernel_argument(&format!("preempt={preemption}"))
        .variable("ROUNDS", &ROUNDS.to_string())
        .script(include_str!("kernels/gain.sh"));
    let outcome = succeed(&vm, "luc.ko in virtual time")?;
    Ok(json!({ "said": values(&outcome.text()), "wall_s": outcome.wall.as_secs() }))
}

/// Returns the values of this name in a result.
fn values_of<'a>(result: &'a Value, name: &str) -> Vec<&'a str> {
    let pairs = elements(&result["said"]).iter();
    pairs.filter(|pair| pair[0] == name).filter_map(|pair| pair[1].as_str()).collect()
}

fn number(result: &Value, name: &str) -> Result<u64, EvaluateError> {
    let text = values_of(result, name).first().copied();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| missing(name))
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "**no**" }.to_owned()
}

/// Returns a row of the table of working functions, and whether all of them work.
fn row(release: &str, result: &Value) -> Result<(Vec<String>, bool), EvaluateError> {
    let works = |name: &str| Ok::<_, EvaluateError>(number(result, name)? == 0);
    let of_cuts = |name: &str| count(&result["cuts"], name);
    let unreported = |what: &str| -> Result<u64, EvaluateError> {
        let [made, seen, lost] =
            ["made", "seen", "lost"].map(|which| number(result, &format!("{what}_{which}")));
        Ok(made?.saturating_sub(seen? + lost?))
    };
    let is_loaded = values_of(result, "layout") == ["checked"] && works("unloaded")?;
    let [syncs, messages] = [unreported("syncs")?, unreported("messages")?];
    let warned = elements(&result["warnings"]).len();
    let is_good = is_loaded
        && works("cuts")?
        && works("notifier")?
        && works("throttle")?
        && works("fsck")?
        && syncs + messages == 0
        && warned == 0;
    let preemption = values_of(result, "preemption").join("");
    let row = vec![
        release.to_owned(),
        preemption.trim().to_owned(),
        yes(is_loaded),
        format!("{} / {}", number(result, "holds")?, number(result, "copies")?),
        format!(
            "{} / {} / {}",
            of_cuts("rounds")?,
            of_cuts("acknowledged")?,
            of_cuts("lost")? + of_cuts("torn")?
        ),
        format!(
            "{} / {} / {} / {syncs}",
            number(result, "syncs_made")?,
            number(result, "syncs_seen")?,
            number(result, "syncs_lost")?
        ),
        format!(
            "{} / {} / {} / {messages}",
            number(result, "messages_made")?,
            number(result, "messages_seen")?,
            number(result, "messages_lost")?
        ),
        yes(works("notifier")?),
        yes(works("throttle")?),
        warned.to_string(),
    ];
    Ok((row, is_good))
}

/// Returns the runs of a policy, smallest first.
/// Returns a row of the table of gains, and the gain.
fn gain_row(release: &str, preemption: &str, clients: u64, result: &Value) -> (Vec<String>, f64) {
    let [off, auto] = ["off", "auto"].map(|policy| runs_of(result, policy, clients));
    let median = |runs: &[u64]| runs.get(runs.len() / 2).copied().unwrap_or_default();
    let ratio = median(&auto) as f64 / median(&off).max(1) as f64;
    let list = |runs: &[u64]| runs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    let cells =
        cells![release, preemption, clients, list(&off), list(&auto), format!("{ratio:.2}")];
    (cells, ratio)
}

fn runs_of(result: &Value, policy: &str, clients: u64) -> Vec<u64> {
    let texts = values_of(result, &format!("{policy}_{clients}"));
    let mut runs: Vec<u64> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    runs.sort_unstable();
    runs
}

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let cuts = harness.options.cuts.map_or(CUTS, |cuts| cuts.min(CUTS));
    let kernels: Vec<_> =
        KERNELS.into_iter().filter(|(version, _)| harness.options.wants(version)).collect();
    let runs = Runs::open(harness);
    let boots = kernels.iter().map(|(_, ways)| 1 + ways.len()).sum();
    let mut progress = Progress::new(harness.part, boots);
    let mut works = Table::new(&[
        "kernel",
        "preemption",
        "luc.ko builds, loads, unloads",
        "holds / copies",
        "power cuts / acknowledged / lost or torn",
        "syncs made / recorded / told as lost / unreported",
        "messages made / recorded / told as lost / unreported",
        "notifier",
        "throttle",
        "warnings",
    ]);
    let mut gains =
        Table::new(&["kernel", "preempt=", "clients", "off, files", "auto, files", "gain"]);
    let mut targets = Vec::new();
    for (version, ways) in kernels {
        let guests = Guests::prepare(harness, version)?;
        let release = guests.release();
        let key = json!({ "kernel": release, "cuts": cuts });
        let result = runs.get(&key, || functions(&guests, cuts))?;
        let (cells, is_good) = row(release, &result)?;
        targets.push(Target::new(
            format!("{release}: all works, nothing is lost in silence"),
            is_good,
            cells[4..7].join("; "),
        ));
        works.row(cells);
        progress.step(&format!("{release}: what works"));
        for preemption in ways {
            let key = json!({ "kernel": release, "preemption": preemption });
            let result = runs.get(&key, || gain(&guests, preemption))?;
            for clients in CLIENTS {
                let (cells, ratio) = gain_row(release, preemption, clients, &result);
                gains.row(cells);
                targets.push(Target::new(
                    format!("{release}, {preemption}, {clients} clients: auto is not slower"),
                    ratio >= MIN_GAIN,
                    format!("{ratio:.2}"),
                ));
            }
            progress.step(&format!("{release}, preempt={preemption}: the gain"));
        }
    }
    Ok(Page {
        title: "Kernels of several distributions".to_owned(),
        about: format!(
            "Each kernel of Debian 12, its backports, Ubuntu and Debian 13's backports boots in a virtual machine with \
             two processors and a lagdisk (a flush takes 2 ms). luc.ko is built with its headers and loaded; \
             {cuts} power cuts of 8 clients with policy=delay and copy-out; then `luc record` sees {WRITES} synchronous \
             writes of each of four writers beside four threads that compute, and `luc record --fleet` {BYTES} bytes \
             through each of four pipes, one at a time. The gain is measured in virtual time on one processor, off and \
             auto in turn, in runs of 1.3 s with a flush of 3 ms."
        ),
        tables: vec![
            ("What works:".to_owned(), works),
            ("What luc.ko gains, smallest run first:".to_owned(), gains),
        ],
        targets,
    })
}
