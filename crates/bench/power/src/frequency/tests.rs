//! Tests on a directory that stands for /sys.

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::symlink;

use rustix::fs::inotify;
use tempfile::TempDir;

use super::*;

struct Fake {
    sysfs: TempDir,
}

impl Fake {
    /// Two processors with a policy each, without turbo or SMT switches.
    fn new(policy: &[(&str, &str)]) -> Self {
        let fake = Self { sysfs: TempDir::new().expect("a folder") };
        for number in 0..2 {
            for (name, value) in policy {
                fake.put(&format!("cpufreq/policy{number}/{name}"), value);
            }
            let cpu = fake.path(&format!("cpu{number}"));
            fs::create_dir_all(&cpu).expect("made");
            symlink(format!("../cpufreq/policy{number}"), cpu.join("cpufreq")).expect("linked");
        }
        fake
    }

    /// Imitates acpi-cpufreq: a table, and the governor userspace.
    fn with_table() -> Self {
        let fake = Self::new(&[
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_available_governors", "ondemand userspace performance"),
            ("scaling_available_frequencies", "2401000 2400000 1600000 1200000"),
            ("cpuinfo_min_freq", "1200000"),
            ("cpuinfo_max_freq", "2401000"),
            ("scaling_min_freq", "1200000"),
            ("scaling_max_freq", "2401000"),
            ("scaling_governor", "ondemand"),
            ("scaling_setspeed", "<unsupported>"),
            ("scaling_cur_freq", "1600000"),
        ]);
        fake.put("cpufreq/boost", "1");
        fake
    }

    /// Imitates intel_pstate: a range, and no governor userspace.
    fn with_range() -> Self {
        let fake = Self::new(&[
            ("scaling_driver", "intel_pstate"),
            ("scaling_available_governors", "performance powersave"),
            ("cpuinfo_min_freq", "800000"),
            ("cpuinfo_max_freq", "4500000"),
            ("base_frequency", "3000000"),
            ("scaling_min_freq", "800000"),
            ("scaling_max_freq", "4500000"),
            ("scaling_governor", "powersave"),
            ("scaling_setspeed", "<unsupported>"),
        ]);
        fake.put("intel_pstate/no_turbo", "0");
        fake.put("smt/control", "on");
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        cpu_dir(self.sysfs.path()).join(name)
    }

    fn put(&self, name: &str, value: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, format!("{value}\n")).expect("written");
    }

    fn get(&self, name: &str) -> String {
        luc_host::sysfs::read(&self.path(name)).expect(name)
    }

    fn saved(&self) -> PathBuf {
        self.sysfs.path().join("saved.json")
    }

    /// Returns every file and its text.
    fn all(&self) -> Vec<(PathBuf, String)> {
        let mut folders = vec![self.sysfs.path().to_owned()];
        let mut all = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("listed").flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if path.is_file() {
                    let text = fs::read_to_string(&path).expect("readable");
                    all.push((path, text.trim().to_owned()));
                }
            }
        }
        all.sort();
        all
    }

    fn check(&self, setting: &str, options: TurboAndSmtOptions) -> Result<(), String> {
        let setting = setting.parse().expect("a setting");
        let before = self.all();
        let outcome = check(self.sysfs.path(), &[setting], &options);
        assert_eq!(self.all(), before, "a check changes nothing");
        outcome.map_err(|error| {
            let message = error.to_string();
            assert_eq!(message.lines().count(), 1, "{message}");
            message
        })
    }

    fn take(&self, options: TurboAndSmtOptions) -> BorrowedFrequency {
        BorrowedFrequency::take(self.sysfs.path(), &self.saved(), &options).expect("taken")
    }
}

const NOTHING: TurboAndSmtOptions = TurboAndSmtOptions { turbo: None, smt: None };
const OFF: TurboAndSmtOptions = TurboAndSmtOptions { turbo: Some(false), smt: Some(false) };

#[test]
fn a_table_is_set_by_userspace_and_put_back() {
    let fake = Fake::with_table();
    let before = fake.all();
    let no_turbo = TurboAndSmtOptions { turbo: Some(false), smt: None };
    fake.check("1.6GHz", no_turbo).expect("possible");
    let lent = fake.take(no_turbo);
    lent.set(&FrequencySetting::Khz(1_600_000)).expect("set");
    for cpu in ["cpu0", "cpu1"] {
        let get = |name: &str| fake.get(&format!("{cpu}/cpufreq/{name}"));
        assert_eq!(get("scaling_governor"), "userspace");
        assert_eq!(get("scaling_setspeed"), "1600000");
        assert_eq!(get("scaling_min_freq"), "1600000");
        assert_eq!(get("scaling_max_freq"), "1600000");
    }
    assert_eq!(fake.get("cpufreq/boost"), "0");
    lent.set(&FrequencySetting::AsIs).expect("as before");
    assert_eq!(fake.get("cpu1/cpufreq/scaling_governor"), "ondemand");
    assert_eq!(fake.get("cpu1/cpufreq/scaling_max_freq"), "2401000");
    assert_eq!(fake.get("cpufreq/boost"), "0");
    lent.set(&FrequencySetting::Khz(1_200_000)).expect("set");
    restore(fake.sysfs.path(), &fake.saved()).expect("restored");
    // The kernel's text there follows from the governor.
    fake.put("cpufreq/policy0/scaling_setspeed", "<unsupported>");
    fake.put("cpufreq/policy1/scaling_setspeed", "<unsupported>");
    assert_eq!(fake.all(), before);
}

#[test]
fn a_range_is_set_by_its_limits_and_put_back() {
    let fake = Fake::with_range();
    let before = fake.all();
    fake.check("2.2GHz", OFF).expect("possible");
    let lent = fake.take(OFF);
    lent.set(&FrequencySetting::Khz(2_200_000)).expect("set");
    assert_eq!(fake.get("cpu0/cpufreq/scaling_min_freq"), "2200000");
    assert_eq!(fake.get("cpu1/cpufreq/scaling_max_freq"), "2200000");
    assert_eq!(fake.get("cpu1/cpufreq/scaling_governor"), "powersave");
    assert_eq!(fake.get("intel_pstate/no_turbo"), "1");
    assert_eq!(fake.get("smt/control"), "off");
    // The sweep was killed; its cleanup process has only the file.
    drop(lent);
    restore(fake.sysfs.path(), &fake.saved()).expect("restored");
    assert_eq!(fake.all(), before);
    restore(fake.sysfs.path(), &fake.saved()).expect("nothing to do");
}

/// A write that is killed may leave an empty file.
#[test]
fn limits_that_are_no_numbers_are_put_back() {
    let fake = Fake::with_table();
    fake.put("cpufreq/policy0/scaling_governor", "userspace");
    fake.put("cpufreq/policy0/scaling_setspeed", "1200000");
    let before = fake.all();
    for name in ["scaling_max_freq", "scaling_min_freq", "scaling_setspeed"] {
        let lent = fake.take(NOTHING);
        lent.set(&FrequencySetting::Khz(1_600_000)).expect("set");
        fake.put(&format!("cpufreq/policy0/{name}"), "");
        drop(lent);
        restore(fake.sysfs.path(), &fake.saved()).expect(name);
        // The kernel's text there follows from the governor.
        fake.put("cpufreq/policy1/scaling_setspeed", "<unsupported>");
        assert_eq!(fake.all(), before, "{name}");
    }
}

#[test]
fn an_error_half_way_is_put_back() {
    let fake = Fake::with_range();
    // Turbo cannot be written: SMT is off by then.
    fs::remove_file(fake.path("intel_pstate/no_turbo")).expect("removed");
    fs::create_dir(fake.path("intel_pstate/no_turbo")).expect("in its place");
    let message = fake.check("as-is", OFF).expect_err("refused before");
    assert!(message.contains("no_turbo") && message.contains("root"), "{message}");
    fs::remove_dir(fake.path("intel_pstate/no_turbo")).expect("removed");
    fake.put("intel_pstate/no_turbo", "0");
    let before = fake.all();
    let lent = fake.take(OFF);
    // The second processor's limit cannot be read any more.
    let limit = fake.path("cpu1/cpufreq/scaling_max_freq");
    fs::remove_file(&limit).expect("removed");
    fs::create_dir(&limit).expect("in its place");
    let message = lent.set(&FrequencySetting::Khz(2_200_000)).expect_err("refused").to_string();
    assert!(message.contains("cpu1/cpufreq/scaling_max_freq"), "{message}");
    assert_eq!(fake.get("cpu0/cpufreq/scaling_max_freq"), "2200000");
    restore(fake.sysfs.path(), &fake.saved()).expect_err("not yet");
    assert!(fake.saved().exists());
    fs::remove_dir(&limit).expect("removed");
    fs::write(&limit, "4500000\n").expect("written");
    restore(fake.sysfs.path(), &fake.saved()).expect("now");
    assert_eq!(fake.all(), before);
}

/// Returns the names of files written, in their order.
fn writes(fake: &Fake, act: impl FnOnce()) -> Vec<&'static str> {
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
    let names = ["scaling_min_freq", "scaling_max_freq"];
    let numbers = names.map(|name| {
        let path = fake.path("cpu0/cpufreq").join(name);
        let flags = inotify::WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&watch, path, flags).expect("watched")
    });
    act();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut order = Vec::new();
    while let Ok(event) = events.next() {
        let at = numbers.iter().position(|&number| number == event.wd());
        order.push(names[at.expect("one of them")]);
    }
    order
}

#[test]
fn the_lower_limit_is_never_above_the_upper() {
    let fake = Fake::with_range();
    let policy = CpufreqPolicy::of(&cpu_dir(fake.sysfs.path()), "cpu0");
    let order = |min: u64, max: u64| writes(&fake, || policy.limit(min, max).expect("set"));
    let (min_first, max_first) =
        (["scaling_min_freq", "scaling_max_freq"], ["scaling_max_freq", "scaling_min_freq"]);
    assert_eq!(order(2_000_000, 2_000_000), min_first);
    assert_eq!(order(3_000_000, 3_000_000), max_first);
    assert_eq!(order(1_000_000, 1_000_000), min_first);
    assert_eq!(order(800_000, 4_500_000), min_first);
    assert!(order(800_000, 4_500_000).is_empty());
}

#[test]
fn frequencies_that_are_not_there_name_the_nearest() {
    let fake = Fake::with_range();
    let message = fake.check("5GHz", NOTHING).expect_err("too high");
    assert!(message.contains("0.8GHz to 4.5GHz"), "{message}");
    assert!(message.contains("nearest possible is 4.5GHz"), "{message}");
    let message = fake.check("3.2GHz", OFF).expect_err("turbo");
    assert!(message.contains("nearest possible is 3GHz"), "{message}");
    fake.check("3.2GHz", NOTHING).expect("with turbo");
    let message = fake.check("100MHz", NOTHING).expect_err("too low");
    assert!(message.contains("nearest possible is 0.8GHz"), "{message}");
    // As with amd-pstate.
    fs::remove_file(fake.path("cpufreq/policy0/base_frequency")).expect("removed");
    fake.put("cpu0/acpi_cppc/nominal_freq", "2900");
    let message = fake.check("3GHz", OFF).expect_err("turbo");
    assert!(message.contains("nearest possible is 2.9GHz"), "{message}");
    let fake = Fake::with_table();
    let message = fake.check("1.3GHz", NOTHING).expect_err("between");
    assert!(
        message.contains("1.2GHz, 1.6GHz, 2.4GHz, 2.401GHz")
            && message.contains("possible is 1.2GHz"),
        "{message}"
    );
}

#[test]
fn a_machine_without_them_says_so() {
    let fake = Fake::new(&[]);
    let message = fake.check("2.4GHz", NOTHING).expect_err("no cpufreq");
    for words in ["2.4GHz", "cpufreq", "throttle:50%", "no frequency", "virtual time"] {
        assert!(message.contains(words), "{message}");
    }
    let only = |turbo, smt| TurboAndSmtOptions { turbo, smt };
    let message = fake.check("as-is", only(Some(false), None)).expect_err("");
    assert!(message.contains("boost"), "{message}");
    let message = fake.check("as-is", only(None, Some(false))).expect_err("");
    assert!(message.contains("smt/control"), "{message}");
    fake.put("smt/control", "notimplemented");
    let message = fake.check("as-is", only(None, Some(false))).expect_err("");
    assert!(message.contains("notimplemented"), "{message}");
    fake.put("smt/control", "notsupported");
    fake.check("as-is", only(None, Some(false))).expect("off as it is");
    let message = fake.check("as-is", only(None, Some(true))).expect_err("");
    assert!(message.contains("notsupported"), "{message}");
    fake.check("as-is", NOTHING).expect("nothing to do");
}

#[test]
fn boost_of_single_policies_and_what_the_driver_does_not_do() {
    let fake = Fake::with_range();
    fs::remove_dir_all(fake.path("intel_pstate")).expect("removed");
    fake.put("cpufreq/policy0/boost", "1");
    fake.put("cpufreq/policy1/boost", "0");
    let before = fake.all();
    let no_turbo = TurboAndSmtOptions { turbo: Some(false), smt: None };
    fake.check("as-is", no_turbo).expect("possible");
    drop(fake.take(no_turbo));
    assert_eq!(fake.get("cpu0/cpufreq/boost"), "0");
    restore(fake.sysfs.path(), &fake.saved()).expect("restored");
    assert_eq!(fake.all(), before);
    // A file that does not take what is written to it.
    let limit = fake.path("cpufreq/policy0/scaling_max_freq");
    fs::remove_file(&limit).expect("removed");
    symlink("/dev/null", &limit).expect("linked");
    let lent = CpufreqPolicy::of(&cpu_dir(fake.sysfs.path()), "cpu0");
    lent.pin(2_000_000).expect_err("not reached");
}

#[test]
fn one_sweep_at_a_time_and_saved_files_of_others() {
    let fake = Fake::with_range();
    let held = lock(fake.sysfs.path()).expect("free");
    let message = lock(fake.sysfs.path()).expect_err("held").to_string();
    assert!(message.contains("in use"), "{message}");
    drop(held);
    lock(fake.sysfs.path()).expect("free again");
    for text in [
        "",
        "{}",
        r#"{"smt":null,"turbo":[["../../../../etc/boost","1"]],"policies":[]}"#,
        r#"{"smt":null,"turbo":[["/etc/passwd","1"]],"policies":[]}"#,
    ] {
        fs::write(fake.saved(), text).expect("written");
        let message = restore(fake.sysfs.path(), &fake.saved()).expect_err(text);
        assert!(message.to_string().contains("not what a sweep saved"), "{message}");
        assert!(fake.saved().exists());
    }
}

#[test]
fn processors_that_share_a_policy_are_one() {
    let fake = Fake::with_range();
    fs::remove_file(fake.path("cpu1/cpufreq")).expect("removed");
    symlink("../cpufreq/policy0", fake.path("cpu1/cpufreq")).expect("linked");
    // cpuidle and cpufreq are folders there, and no processors.
    fs::create_dir_all(fake.path("cpuidle")).expect("made");
    let policies = CpufreqPolicy::all(&cpu_dir(fake.sysfs.path())).expect("read");
    let names: Vec<&str> = policies.iter().map(|policy| &*policy.processor).collect();
    assert_eq!(names, ["cpu0"]);
    assert_eq!(now_khz(fake.sysfs.path()), None);
    assert_eq!(now_khz(Fake::with_table().sysfs.path()), Some([1_600_000, 1_600_000]));
}
