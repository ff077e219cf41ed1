//! `luc sweep` with frequencies, throttles and energy, from end to end: on a directory that stands for /sys, so that
//! it needs neither the hardware nor privileges. A real cgroup needs root; what lacks it says `skipped`.

mod restored_settings;
mod sweep_folder;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{LUC, is_root, refusal, stderr, stdout};
use serde_json::Value;
use sweep_folder::{CPU, SweepFolder};

const PACKAGE: &str = "sys/class/powercap/intel-rapl:0";

/// The workload says what the processors are while it runs.
const FREQUENCIES: &str = r#"
frequency = ["as-is", "1.2GHz", "2.4GHz"]
frequency-options = { turbo = false, smt = false }
settle = "0"
stop = { goal = 0.5, min = 6, max = 6 }
energy = { idle = "20ms" }
[[workload]]
name = "look"
command = ["sh", "-c", '''
cd $HERE/sys/devices/system/cpu
test $(cat smt/control) = off || exit 3
test $(cat intel_pstate/no_turbo) = 1 || exit 4
test $(cat cpu1/cpufreq/scaling_min_freq) -le $(cat cpu0/cpufreq/scaling_max_freq) || exit 5
cd $HERE/sys/class/powercap/intel-rapl:0 || exit 6
echo $(( ($(cat energy_uj) + 2000000) % 262143328850 )) >energy_uj
cat $HERE/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq
''']
figure = { regex = "([0-9]+)", unit = "kHz/s" }
[[target]]
name = "here"
directory = "$HERE/work"
"#;

fn with_package(place: &SweepFolder) {
    place.put(&format!("{PACKAGE}/name"), "package-0");
    // It starts again in the middle of the sweep.
    place.put(&format!("{PACKAGE}/energy_uj"), "262133328850");
    place.put(&format!("{PACKAGE}/max_energy_range_uj"), "262143328850");
}

#[test]
fn frequencies_are_set_and_energy_is_beside_each_repeat() {
    let place = SweepFolder::with_processors(FREQUENCIES);
    with_package(&place);
    let output = place.run();
    assert!(output.status.success(), "{}", stderr(&output));
    place.assert_as_before();
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let points = report["points"].as_array().expect("points");
    for (point, khz) in points.iter().zip([4_500_000.0, 1_200_000.0, 2_400_000.0]) {
        assert_eq!(point["interval"]["median"], khz, "{point}");
        assert_eq!(point["energy"]["gross_joules"]["median"], 2.0);
        assert_eq!(point["energy"]["unit_per_joule"], "kHz/J");
    }
    assert_eq!(points[2]["key"], "look,1,here,off,2.4GHz");
    assert_eq!(points[2]["ratios"][0]["axis"], "frequency");
    let energy = &report["energy"];
    assert_eq!(energy["source"], "powercap");
    assert_eq!(energy["idle_watts"], 0.0);
    let scope = energy["scope"].as_str().expect("a scope");
    assert!(scope.contains("not disks"), "{scope}");
    let repeats = report["repeats"].as_array().expect("repeats");
    assert_eq!(repeats.len(), 18);
    for repeat in repeats {
        let energy = &repeat["energy"];
        assert_eq!(energy["gross_joules"], 2.0);
        assert_eq!(energy["net_joules"], 2.0);
        let number = |value: &Value| value.as_f64().expect("a number");
        let rate = number(&repeat["value"]) * number(&energy["seconds"]) / 2.0;
        assert!((number(&repeat["per_gross_joule"]) / rate - 1.0).abs() < 1e-9);
        let reported = &repeat["environment"]["frequency_khz"];
        assert_eq!(*reported, serde_json::json!([1_234_567, 1_234_567]));
    }
    let csv = fs::read_to_string(place.path("out/results.csv")).expect("written");
    let head = csv.lines().next().expect("a head");
    assert!(head.contains("policy,frequency,round"), "{head}");
    assert!(head.ends_with("gross_joules,net_joules,per_gross_joule,per_net_joule"));
    // The report of the finished sweep has the same in words.
    let words = ["sweep", "plan.toml", "--out", "out"];
    let again = Command::new(LUC)
        .args(words)
        .current_dir(place.folder.path())
        .arg("--sysfs")
        .arg(place.path("sys"))
        .output()
        .expect("luc runs");
    assert!(stdout(&again).contains("energy by powercap"), "{}", stdout(&again));
    assert!(stdout(&again).contains("gross 2.000 J"), "{}", stdout(&again));
    // No other sweep is let in while one has the processors.
    let held = fs::File::open(place.path(CPU)).expect("open");
    held.lock().expect("locked");
    fs::remove_dir_all(place.path("out")).expect("removed");
    let message = refusal(&place.run());
    assert!(message.contains("in use by another sweep"), "{message}");
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_touched() {
    let place = SweepFolder::new(FREQUENCIES);
    fs::create_dir_all(place.path(CPU)).expect("made");
    let message = refusal(&place.run());
    for words in ["1.2GHz", "no cpufreq", "throttle:50%", "virtual time"] {
        assert!(message.contains(words), "{message}");
    }
    assert!(!place.path("out").exists());
    for (from, to, words) in [
        ("2.4GHz", "3.5GHz", &["3.5GHz", "nearest possible is 3GHz"][..]),
        ("2.4GHz", "1200MHz", &["1.2GHz", "twice"]),
        ("2.4GHz", "fast", &["plan.toml:2:", "'fast'", "throttle:50%"]),
        ("2.4GHz", "throttle:50%", &["cpu controller"]),
        ("turbo", "turbu", &["plan.toml:3:", "'turbo'"]),
        ("idle = ", "idel = ", &["plan.toml:6:", "'idle'"]),
        ("idle = ", "regex = 'x', idle = ", &["regex", "command"]),
        ("idle = ", "command = 'x', regex = 'x', idle = ", &["group"]),
    ] {
        let place = SweepFolder::with_processors(&FREQUENCIES.replacen(from, to, 1));
        let message = refusal(&place.run());
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!place.path("out").exists(), "{message}");
        place.assert_as_before();
    }
}

#[test]
fn a_failed_workload_and_a_failed_meter_leave_nothing_set() {
    let place = SweepFolder::with_processors(FREQUENCIES);
    let message = refusal(&place.run());
    // There is no package to write to.
    assert!(message.contains("exit status: 6"), "{message}");
    place.assert_as_before();
    let place = SweepFolder::with_processors(
        &FREQUENCIES.replace(r#"idle = "20ms""#, r#"command = "echo nothing", idle = "0""#),
    );
    let message = refusal(&place.run());
    assert!(message.contains("energy.command") && message.contains("'nothing'"), "{message}");
    place.assert_as_before();
}

#[test]
fn a_throttle_is_a_cgroup_and_says_that_it_is_no_frequency() {
    let can = is_root() && Path::new("/sys/fs/cgroup").is_dir();
    if !can {
        luc_testkit::skipped!("a cgroup needs root");
        return;
    }
    let plan = r#"
frequency = ["throttle:50%", "as-is"]
settle = "0"
stop = { goal = 0.5, min = 6, max = 6 }
[[workload]]
name = "where"
command = ["sh", "-c", "if grep luc-sweep- /proc/self/cgroup >>$HERE/groups; then echo 1; else echo 2; fi"]
figure = { regex = "([0-9])", unit = "marks" }
[[target]]
name = "here"
directory = "$HERE/work"
"#;
    let place = SweepFolder::new(plan);
    let output = Command::new(LUC)
        .args(["sweep", "plan.toml", "--out", "out"])
        .current_dir(place.folder.path())
        .output()
        .expect("luc runs");
    let message = stderr(&output);
    if message.contains("cpu controller") {
        luc_testkit::skipped!("{message}");
        return;
    }
    assert!(output.status.success(), "{message}");
    let text = stdout(&output);
    for words in ["throttle:50%(not-a-frequency)", "not a frequency", "1.000 marks", "2.000 marks"]
    {
        assert!(text.contains(words), "{text}");
    }
    let groups = fs::read_to_string(place.path("groups")).expect("written");
    assert_eq!(groups.lines().count(), 6, "{groups}");
    let name = groups.lines().next().and_then(|line| line.rsplit('/').next());
    let name = name.expect("a cgroup");
    assert!(name.starts_with("luc-sweep-"), "{name}");
    for root in ["", "unified/", "cpu/", "cpu,cpuacct/"] {
        assert!(!Path::new("/sys/fs/cgroup").join(root).join(name).exists());
    }
}
