//! Part `packages`: installs the packages of `dist` in a fresh root. It checks what they leave behind and how long
//! the first minutes take. Runs in the root of the sources, by `scripts/packages-test.sh`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, spread};
use luc_stats::median;
use serde_json::Value;

use crate::error::EvaluateError;
use crate::harness::{Harness, elements, missing, parse};

const SCRIPT: &str = "scripts/packages-test.sh";
/// Number of times that the first minutes are timed.
const RUNS: usize = 5;
/// Maximum time from nothing to the demo's last line, seconds.
const MAX_FIRST_MINUTES_S: f64 = 120.0;

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let runs = harness.options.repeats.unwrap_or(RUNS);
    let dist = env::var_os("PACKAGES").map_or_else(|| PathBuf::from("dist"), PathBuf::from);
    let file = harness.path("figures.json");
    fs::write(&file, "").map_err(EvaluateError::file("write", &file))?;
    let mut command = Command::new(SCRIPT);
    command.arg(&dist).arg(&file);
    command.env("FIRST_RUNS", runs.to_string());
    // Status 1 says that something is not as it should be: the targets say what.
    harness.execute(&mut command, &[0, 1])?;
    let text = fs::read_to_string(&file).map_err(EvaluateError::file("read", &file))?;
    let figures: Value = parse(&text, SCRIPT)?;
    harness.keep(figures.clone());
    page(&figures).ok_or_else(|| missing("figures of the first minutes"))
}

/// Makes the page of the measured figures; `None` if a figure is missing.
fn page(figures: &Value) -> Option<Page> {
    let first = figures["first"].as_array()?;
    let times =
        |name: &str| -> Option<Vec<f64>> { first.iter().map(|run| run[name].as_f64()).collect() };
    let totals = times("total_s")?;
    let mut seconds = Table::new(&["step", "seconds"]);
    for (step, name) in [
        ("`apt-get update`", "update_s"),
        ("`apt-get install ./luc_*.deb`", "install_s"),
        ("`luc demo`", "demo_s"),
        ("all", "total_s"),
    ] {
        seconds.row(cells![step, spread(&times(name)?)]);
    }
    let mut sizes = Table::new(&["file", "KiB"]);
    for (name, bytes) in figures["bytes"].as_object()? {
        sizes.row(cells![format!("`{name}`"), bytes.as_u64()?.div_ceil(1024)]);
    }
    let release = figures["release"].as_str()?;
    Some(Page {
        title: "Packages, from nothing".to_owned(),
        about: format!(
            "What `make packages` made, in fresh roots of Debian's or Ubuntu's release `{release}` (mmdebstrap's \
             `minbase`, in memory, {} MiB). A first user's minutes: `apt-get update`, as a new system has no lists of \
             packages, then `apt-get install` of the package of luc alone, which fetches what it needs, then `luc demo`; \
             {} times, one after the other. Then, in one root: all packages are installed, upgraded, removed, installed, \
             purged; what they need, DKMS and kernel headers were there before. After removing and purging all files \
             (names, kinds, modes, owners, links, contents) are compared with those before, but for the logs and \
             caches of apt and dpkg. rpm packages are installed into an empty folder, replaced and erased.",
            figures["base_bytes"].as_u64()? >> 20,
            first.len()
        ),
        tables: vec![
            ("A first user's minutes, medians with their range:".to_owned(), seconds),
            ("Sizes:".to_owned(), sizes),
        ],
        targets: targets(figures, &totals),
    })
}

fn targets(figures: &Value, totals: &[f64]) -> Vec<Target> {
    let life = elements(&figures["life"]);
    let left: Vec<&str> = life.iter().flat_map(|step| strings(&step["left"])).collect();
    let worst = totals.iter().copied().reduce(f64::max);
    let lost = elements(&figures["first"]).iter().map(|run| {
        let count = |name: &str| run["demo"][name].as_u64();
        Some(count("lost")? + count("torn")?)
    });
    let lost: Option<u64> = lost.sum();
    let mut targets = vec![
        Target::below(
            "from nothing to the last line of luc demo, the slowest run, s",
            worst,
            MAX_FIRST_MINUTES_S,
        ),
        Target::new(
            "each demo ends, and its power cuts lose nothing",
            lost == Some(0),
            format!(
                "{} demos, gains {}",
                totals.len(),
                gains(figures).as_deref().map_or("-".to_owned(), spread)
            ),
        ),
        no_findings("nothing is left after remove and after purge", life.len(), &left),
        no_findings("lintian says nothing", 1, &strings(&figures["lintian"])),
    ];
    if !figures["rpmlint"].is_null() {
        let said = strings(&figures["rpmlint"]);
        targets.push(no_findings("rpmlint says nothing", 1, &said));
        let left = strings(&figures["rpm_left"]);
        targets.push(no_findings("rpm leaves nothing when it erases", 1, &left));
    }
    targets
}

/// Returns each demo's ratio of files per second with luc to those without.
fn gains(figures: &Value) -> Option<Vec<f64>> {
    let runs = figures["first"].as_array()?;
    let gains: Option<Vec<f64>> = runs.iter().map(|run| run["demo"]["ratio"].as_f64()).collect();
    gains.filter(|gains| median(gains).is_some())
}

/// Makes the target that none of `checks` checks has found anything.
fn no_findings(what: &str, checks: usize, found: &[&str]) -> Target {
    let figure = match found {
        [] => "nothing".to_owned(),
        [first, ..] => format!("{} lines: {first}", found.len()),
    };
    Target::new(what, checks > 0 && found.is_empty(), figure)
}

fn strings(list: &Value) -> Vec<&str> {
    elements(list).iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn figures(left: &[&str], total_s: f64) -> Value {
        json!({
            "release": "bookworm", "base_bytes": 200 << 20, "bytes": { "luc_1.deb": 2048 },
            "lintian": [], "life": [{ "step": "remove", "left": left }],
            "first": [{ "update_s": 3.0, "install_s": 5.0, "demo_s": 40.0, "total_s": total_s,
                        "demo": { "ratio": 1.8, "lost": 0, "torn": 0 } }],
        })
    }

    fn met(figures: &Value) -> Vec<Option<bool>> {
        let page = page(figures).expect("a page");
        page.targets.iter().map(|target| target.met).collect()
    }

    #[test]
    fn targets_follow_from_the_figures() {
        assert_eq!(met(&figures(&[], 48.0)), [Some(true); 4]);
        let late = met(&figures(&[], 121.0));
        assert_eq!(late[0], Some(false));
        let left = met(&figures(&["./etc/luc f 644 root:root"], 48.0));
        assert_eq!(left[2], Some(false));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let mut bare = figures(&[], 48.0);
        bare["life"] = json!([]);
        bare["first"][0]["demo"] = Value::Null;
        let met = met(&bare);
        assert_eq!((met[1], met[2]), (Some(false), Some(false)));
        bare["first"] = Value::Null;
        assert!(page(&bare).is_none());
    }
}
