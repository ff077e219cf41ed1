//! `luc sweep` with frequencies, throttles and energy, from end to end: on a directory that stands for /sys, so that it
//! needs neither the hardware nor privileges. A real cgroup needs root; what lacks it says `skipped`.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::{LUC, is_root, refusal, stderr, stdout, until};
use serde_json::Value;
use tempfile::TempDir;

const CPU: &str = "sys/devices/system/cpu";
const PACKAGE: &str = "sys/class/powercap/intel-rapl:0";

/// A folder with a plan, a directory to work in, and a /sys.
struct Place {
    folder: TempDir,
}

impl Place {
    /// `$HERE` in the plan is the folder.
    fn new(plan: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let place = Self { folder };
        let here = place.folder.path().display().to_string();
        for name in ["work", "sys"] {
            fs::create_dir(place.path(name)).expect("made");
        }
        fs::write(place.path("plan.toml"), plan.replace("$HERE", &here)).expect("written");
        place
    }

    /// With two processors as intel_pstate has them.
    fn with_processors(plan: &str) -> Self {
        let place = Self::new(plan);
        for number in 0..2 {
            for (name, value) in [
                ("scaling_driver", "intel_pstate"),
                ("scaling_available_governors", "performance powersave"),
                ("cpuinfo_min_freq", "800000"),
                ("cpuinfo_max_freq", "4500000"),
                ("base_frequency", "3000000"),
                ("scaling_min_freq", "800000"),
                ("scaling_max_freq", "4500000"),
                ("scaling_governor", "powersave"),
                ("scaling_cur_freq", "1234567"),
            ] {
                place.put(&format!("{CPU}/cpufreq/policy{number}/{name}"), value);
            }
            let cpu = place.path(&format!("{CPU}/cpu{number}"));
            fs::create_dir(&cpu).expect("made");
            symlink(format!("../cpufreq/policy{number}"), cpu.join("cpufreq")).expect("linked");
        }
        place.put(&format!("{CPU}/intel_pstate/no_turbo"), "0");
        place.put(&format!("{CPU}/smt/control"), "on");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, value: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, format!("{value}\n")).expect("written");
    }

    fn get(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name)).expect(name);
        text.trim().to_owned()
    }

    /// It is killed if the test is, and its cleanup process clears up.
    fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", LUC])
            .args(["sweep", "plan.toml", "--out", "out", "--json", "--sysfs"])
            .arg(self.path("sys"))
            .current_dir(self.folder.path())
            .env("LUC_RUN_DIR", self.path("run"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> Output {
        self.command().output().expect("luc runs")
    }

    /// Where there are no notes of other sweeps.
    fn sweep_without_restoring(&self) -> Output {
        let mut command = self.command();
        let output = command.env("LUC_RUN_DIR", self.path("other run")).output();
        output.expect("luc runs")
    }

    fn start(&self) -> Child {
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("luc starts")
    }

    /// The settings of every processor, and of all.
    fn settings(&self) -> Vec<String> {
        let mut all: Vec<String> = ["intel_pstate/no_turbo", "smt/control"]
            .iter()
            .map(|name| self.get(&format!("{CPU}/{name}")))
            .collect();
        for number in 0..2 {
            for name in ["scaling_min_freq", "scaling_max_freq", "scaling_governor"] {
                all.push(self.get(&format!("{CPU}/cpufreq/policy{number}/{name}")));
            }
        }
        all
    }

    fn assert_as_before(&self) {
        let one = ["800000", "4500000", "powersave"];
        assert_eq!(self.settings(), [&["0", "on"][..], &one, &one].concat());
        assert!(!self.path("out/processors.json").exists());
    }
}

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

fn with_package(place: &Place) {
    place.put(&format!("{PACKAGE}/name"), "package-0");
    // It starts again in the middle of the sweep.
    place.put(&format!("{PACKAGE}/energy_uj"), "262133328850");
    place.put(&format!("{PACKAGE}/max_energy_range_uj"), "262143328850");
}

#[test]
fn frequencies_are_set_and_energy_is_beside_each_repeat() {
    let place = Place::with_processors(FREQUENCIES);
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
    assert!(
        stdout(&again).contains("energy by powercap"),
        "{}",
        stdout(&again)
    );
    assert!(
        stdout(&again).contains("gross 2.000 J"),
        "{}",
        stdout(&again)
    );
    // No other sweep is let in while one has the processors.
    let held = fs::File::open(place.path(CPU)).expect("open");
    held.lock().expect("locked");
    fs::remove_dir_all(place.path("out")).expect("removed");
    let said = refusal(&place.run());
    assert!(said.contains("in use by another sweep"), "{said}");
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_touched() {
    let place = Place::new(FREQUENCIES);
    fs::create_dir_all(place.path(CPU)).expect("made");
    let said = refusal(&place.run());
    for words in ["1.2GHz", "no cpufreq", "throttle:50%", "virtual time"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!place.path("out").exists());
    for (from, to, words) in [
        (
            "2.4GHz",
            "3.5GHz",
            &["3.5GHz", "nearest possible is 3GHz"][..],
        ),
        ("2.4GHz", "1200MHz", &["1.2GHz", "twice"]),
        (
            "2.4GHz",
            "fast",
            &["plan.toml:2:", "'fast'", "throttle:50%"],
        ),
        ("2.4GHz", "throttle:50%", &["cpu controller"]),
        ("turbo", "turbu", &["plan.toml:3:", "'turbo'"]),
        ("idle = ", "idel = ", &["plan.toml:6:", "'idle'"]),
        ("idle = ", "regex = 'x', idle = ", &["regex", "command"]),
        ("idle = ", "command = 'x', regex = 'x', idle = ", &["group"]),
    ] {
        let place = Place::with_processors(&FREQUENCIES.replacen(from, to, 1));
        let said = refusal(&place.run());
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!place.path("out").exists(), "{said}");
        place.assert_as_before();
    }
}

#[test]
fn a_failed_workload_and_a_failed_meter_leave_nothing_set() {
    let place = Place::with_processors(FREQUENCIES);
    let said = refusal(&place.run());
    // There is no package to write to.
    assert!(said.contains("exit status: 6"), "{said}");
    place.assert_as_before();
    let place = Place::with_processors(&FREQUENCIES.replace(
        r#"idle = "20ms""#,
        r#"command = "echo nothing", idle = "0""#,
    ));
    let said = refusal(&place.run());
    assert!(
        said.contains("energy.command") && said.contains("'nothing'"),
        "{said}"
    );
    place.assert_as_before();
}

/// A repeat that does not end, a meter, and a mark when both are there.
const ENDLESS: &str = r#"
frequency = ["1.2GHz"]
frequency-options = { turbo = false, smt = false }
settle = "0"
stop = { min = 6, max = 6 }
energy = { command = "echo $$ >$HERE/meter; while sleep 0.05; do echo 5; done", idle = "0" }
[[workload]]
name = "wait"
command = ["sh", "-c", "test -e $HERE/quick || { touch $HERE/begun; sleep 100; }; echo 1 >$HERE/done; sleep 0.1"]
[[target]]
name = "here"
directory = "$HERE/work"
"#;

fn begun() -> (Place, Child) {
    let place = Place::with_processors(ENDLESS);
    let mut sweep = place.start();
    until("a repeat", || {
        assert!(sweep.try_wait().expect("known").is_none(), "it has ended");
        place.path("begun").exists()
    });
    let one = ["1200000", "1200000", "powersave"];
    assert_eq!(place.settings(), [&["1", "off"][..], &one, &one].concat());
    (place, sweep)
}

fn is_running(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

#[test]
fn interrupted_it_puts_everything_back() {
    let (place, mut sweep) = begun();
    let pid = sweep.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    let status = sweep.wait().expect("waited for");
    assert_eq!(status.code(), Some(130));
    place.assert_as_before();
    assert!(!is_running(&place.get("meter")));
}

#[test]
fn killed_its_cleanup_process_puts_everything_back() {
    let (place, mut sweep) = begun();
    sweep.kill().expect("killed");
    sweep.wait().expect("waited for");
    assert_put_back(&place);
}

#[test]
fn ended_with_its_cleanup_process_by_signals_to_all_it_puts_everything_back() {
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let (place, mut sweep) = begun();
        let cleanup = cleanup_of(sweep.id());
        signal_to(signal, &[&sweep.id().to_string(), &cleanup]);
        sweep.wait().expect("waited for");
        assert_put_back(&place);
        assert_eq!(notes(&place), 0, "{signal}");
    }
}

#[test]
fn without_its_cleanup_process_the_sweep_puts_everything_back_itself() {
    let (place, mut sweep) = begun();
    signal_to("KILL", &[&cleanup_of(sweep.id())]);
    signal_to("TERM", &[&sweep.id().to_string()]);
    let status = sweep.wait().expect("waited for");
    assert_eq!(status.code(), Some(130));
    place.assert_as_before();
    assert!(!place.path("out/work").exists());
    assert_eq!(notes(&place), 0);
}

fn assert_put_back(place: &Place) {
    until("the processors", || {
        !place.path("out/processors.json").exists()
    });
    until("a clear house", || !place.path("out/work").exists());
    place.assert_as_before();
    let meter = place.get("meter");
    until("the meter's end", || !is_running(&meter));
}

/// Another command than a sweep.
fn next_luc(place: &Place, words: &[&str]) -> Output {
    let mut command = Command::new(LUC);
    command.args(words).env("LUC_RUN_DIR", place.path("run"));
    command.output().expect("luc runs")
}

fn notes(place: &Place) -> usize {
    fs::read_dir(place.path("run/sweep")).map_or(0, Iterator::count)
}

#[test]
fn killed_with_its_cleanup_process_the_next_command_of_any_kind_puts_everything_back() {
    if !is_root() {
        return;
    }
    let (place, mut sweep) = begun();
    let text = stderr(&next_luc(&place, &["disk", "list"]));
    assert_eq!(text, "", "a sweep that lives is left alone");
    let nothing = next_luc(&place, &["sweep", "restore"]);
    assert_eq!(stdout(&nothing), "nothing to restore\n");
    signal_to("KILL", &[&cleanup_of(sweep.id()), &sweep.id().to_string()]);
    sweep.wait().expect("waited for");
    let one = ["1200000", "1200000", "powersave"];
    assert_eq!(place.settings(), [&["1", "off"][..], &one, &one].concat());
    let next = next_luc(&place, &["disk", "list"]);
    assert_eq!(stdout(&next), "no disks\n");
    let said = stderr(&next);
    assert_eq!(said.lines().count(), 1, "{said}");
    for words in [
        "killed sweep",
        "the processors' settings",
        "out/work",
        "restored",
    ] {
        assert!(said.contains(words), "{said}");
    }
    place.assert_as_before();
    assert!(!place.path("out/work").exists());
    let meter = place.get("meter");
    until("the meter's end", || !is_running(&meter));
    assert_eq!(notes(&place), 0);
    let again = next_luc(&place, &["disk", "list"]);
    assert_eq!(stderr(&again), "");
    // The same command goes on.
    fs::write(place.path("quick"), "").expect("written");
    let output = place.run();
    assert!(output.status.success(), "{}", stderr(&output));
    place.assert_as_before();
}

#[test]
fn what_others_may_have_written_is_not_restored() {
    if !is_root() {
        return;
    }
    let (place, mut sweep) = begun();
    signal_to("KILL", &[&cleanup_of(sweep.id()), &sweep.id().to_string()]);
    sweep.wait().expect("waited for");
    let file = place.path("out/processors.json");
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    };
    open(&file, 0o666);
    let output = next_luc(&place, &["sweep", "restore", "--json"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("processors.json") && said.contains("mode 666"),
        "{said}"
    );
    let one = ["1200000", "1200000", "powersave"];
    assert_eq!(place.settings(), [&["1", "off"][..], &one, &one].concat());
    let said = refusal(&place.sweep_without_restoring());
    assert!(said.contains("processors.json"), "{said}");
    open(&file, 0o600);
    open(&place.path("out"), 0o777);
    let output = next_luc(&place, &["sweep", "restore"]);
    let said = stdout(&output);
    assert!(
        output.status.success() && said.contains("restored"),
        "{}",
        stderr(&output)
    );
    place.assert_as_before();
    let said = refusal(&place.run());
    assert!(said.contains("out") && said.contains("mode 777"), "{said}");
}

fn signal_to(signal: &str, pids: &[&str]) {
    let sent = Command::new("kill")
        .arg(format!("-{signal}"))
        .args(pids)
        .status();
    assert!(sent.expect("kill runs").success());
}

/// The child of a sweep that clears up after it.
fn cleanup_of(sweep: u32) -> String {
    let parent = format!("PPid:\t{sweep}\n");
    let entries = fs::read_dir("/proc").expect("listed");
    let mut pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let found = pids.find(|pid| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        read("status").contains(&parent) && read("cmdline").contains("--clean-up")
    });
    found.expect("a cleanup process")
}

#[test]
fn a_throttle_is_a_cgroup_and_says_that_it_is_no_frequency() {
    let can = is_root() && Path::new("/sys/fs/cgroup").is_dir();
    if !can {
        println!("skipped: a cgroup needs root");
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
    let place = Place::new(plan);
    let output = Command::new(LUC)
        .args(["sweep", "plan.toml", "--out", "out"])
        .current_dir(place.folder.path())
        .output()
        .expect("luc runs");
    let said = stderr(&output);
    if said.contains("cpu controller") {
        println!("skipped: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let text = stdout(&output);
    for words in [
        "throttle:50%(not-a-frequency)",
        "not a frequency",
        "1.000 marks",
        "2.000 marks",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let groups = fs::read_to_string(place.path("groups")).expect("written");
    assert_eq!(groups.lines().count(), 6, "{groups}");
    let name = groups
        .lines()
        .next()
        .and_then(|line| line.rsplit('/').next());
    let name = name.expect("a cgroup");
    assert!(name.starts_with("luc-sweep-"), "{name}");
    for root in ["", "unified/", "cpu/", "cpu,cpuacct/"] {
        assert!(!Path::new("/sys/fs/cgroup").join(root).join(name).exists());
    }
}
