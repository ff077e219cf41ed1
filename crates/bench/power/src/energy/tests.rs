//! ZoneCounters on a directory that stands for /sys, and meters that are shell scripts.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::meter_command::{WattSample, joules};
use super::powercap::ZoneCounters;
use super::wrapping_counter::WrappingCounter;
use super::*;

/// The range of a real package.
const RANGE_UJ: u64 = 262_143_328_850;

/// A machine with zones: folder, name, microjoules.
struct Fake {
    sysfs: TempDir,
}

impl Fake {
    fn new(zones: &[(&str, &str, u64)]) -> Self {
        let fake = Self { sysfs: TempDir::new().expect("a folder") };
        for (zone, name, uj) in zones {
            fs::create_dir_all(fake.zone(zone)).expect("made");
            fs::write(fake.zone(zone).join("name"), format!("{name}\n")).expect("written");
            let range = fake.zone(zone).join("max_energy_range_uj");
            fs::write(range, format!("{RANGE_UJ}\n")).expect("written");
            fake.put(zone, *uj);
        }
        fake
    }

    fn zone(&self, zone: &str) -> PathBuf {
        self.sysfs.path().join("class/powercap").join(zone)
    }

    fn put(&self, zone: &str, uj: u64) {
        fs::write(self.zone(zone).join("energy_uj"), format!("{uj}\n")).expect("written");
    }

    fn counters(&self) -> ZoneCounters {
        ZoneCounters::open(self.sysfs.path(), Duration::ZERO).expect("counters")
    }
}

/// Two packages with all that Intel's may have.
fn server() -> Fake {
    Fake::new(&[
        ("intel-rapl:0", "package-0", 1_000_000),
        ("intel-rapl:0:0", "core", 400_000),
        ("intel-rapl:0:1", "uncore", 100_000),
        ("intel-rapl:0:2", "dram", RANGE_UJ - 500_000),
        ("intel-rapl:1", "package-1", 7_000_000),
        ("intel-rapl:1:0", "dram", 0),
        ("intel-rapl:2", "psys", 50_000_000),
        ("intel-rapl-mmio:0", "package-0", 1_000_000),
    ])
}

#[test]
fn packages_and_dram_count_once_and_wrap() {
    let fake = server();
    let mut counters = fake.counters();
    assert_eq!(counters.scope, "packages and DRAM of the whole machine, not disks");
    let begun = counters.sample(|| Duration::ZERO);
    for (zone, uj) in [
        ("intel-rapl:0", 11_000_000),
        // All of these are in others.
        ("intel-rapl:0:0", 9_400_000),
        ("intel-rapl:0:1", 900_000),
        ("intel-rapl:2", 90_000_000),
        ("intel-rapl-mmio:0", 11_000_000),
        // Beyond its range: 0.5 J before, 1.5 J after it.
        ("intel-rapl:0:2", 1_500_000),
        ("intel-rapl:1", 12_000_000),
        ("intel-rapl:1:0", 3_000_000),
    ] {
        fake.put(zone, uj);
    }
    let ended = counters.sample(|| Duration::from_secs(1));
    assert_eq!(counters.joules(begun, ended), Ok(10.0 + 2.0 + 5.0 + 3.0));
}

#[test]
fn without_dram_and_without_packages() {
    let amd = Fake::new(&[("intel-rapl:0", "package-0", 0), ("intel-rapl:0:0", "core", 0)]);
    assert!(amd.counters().scope.contains("not DRAM"));
    let dies = Fake::new(&[
        ("intel-rapl:0", "package-0-die-0", 0),
        ("intel-rapl:1", "package-0-die-1", 0),
    ]);
    let mut counters = dies.counters();
    let begun = counters.sample(|| Duration::ZERO);
    dies.put("intel-rapl:0", 1_000_000);
    dies.put("intel-rapl:1", 2_000_000);
    let ended = counters.sample(|| Duration::from_secs(1));
    assert_eq!(counters.joules(begun, ended), Ok(3.0));
    let board = Fake::new(&[("intel-rapl:0", "psys", 0), ("intel-rapl:0:0", "dram", 0)]);
    assert!(board.counters().scope.contains("psys"));
}

#[test]
fn they_are_read_before_they_may_start_again_twice() {
    let period = server().counters().period;
    let watts = RANGE_UJ as f64 / 1e6 / period.as_secs_f64();
    assert!((3_900.0..4_100.0).contains(&watts), "{period:?}");
    let fake = server();
    let mut counters = fake.counters();
    let begun = counters.sample(|| Duration::ZERO);
    // The reader was held up for three periods.
    let ended = counters.sample(|| period * 3);
    let reason = counters.joules(begun, ended).expect_err("not known");
    assert!(reason.contains("not read for"), "{reason}");
    // That is past: the next run is good again.
    let again = counters.sample(|| period * 4);
    fake.put("intel-rapl:0", 2_000_000);
    let more = counters.sample(|| period * 5);
    assert_eq!(counters.joules(again, more), Ok(1.0));
    let short = Fake::new(&[("intel-rapl:0", "package-0", 0)]);
    fs::write(short.zone("intel-rapl:0").join("max_energy_range_uj"), "0\n").expect("written");
    let reason = ZoneCounters::open(short.sysfs.path(), Duration::ZERO).expect_err("no range");
    assert!(reason.contains("too short"), "{reason}");
}

#[test]
fn a_counter_that_is_reset_gives_no_energy() {
    let mut counter = WrappingCounter::new(RANGE_UJ, 5_000_000_000, Duration::ZERO);
    let reason = counter.add(10, Duration::from_secs(1)).expect_err("no wrap so far from the end");
    assert!(reason.contains("no processor"), "{reason}");
    assert_eq!(counter.total_uj(), 0);
    counter.add(1_000_010, Duration::from_secs(2)).expect("good");
    assert_eq!(counter.total_uj(), 1_000_000);
}

/// Joules of a whole run, as a sweep asks for them.
#[test]
fn gross_and_net_of_idle() {
    let fake = server();
    let mut meter = EnergyMeter::open(fake.sysfs.path(), &EnergyOptions::default()).expect("open");
    assert_eq!(meter.about().source.as_deref(), Some("powercap"));
    meter.begin();
    let energy = meter.end().expect("measured");
    assert_eq!((energy.gross_joules, energy.net_joules), (Some(0.0), None));
    meter.set_idle(&RunEnergy {
        seconds: 2.0,
        gross_joules: Some(5.0),
        net_joules: None,
        missing: None,
    });
    assert_eq!(meter.about().idle_watts, Some(2.5));
    meter.begin();
    fake.put("intel-rapl:1:0", 40_000_000);
    let energy = meter.end().expect("measured");
    assert_eq!(energy.gross_joules, Some(40.0));
    assert_eq!(energy.net_joules, Some(40.0 - 2.5 * energy.seconds));
}

#[test]
fn what_cannot_be_read_is_said_and_never_made_up() {
    let nothing = TempDir::new().expect("a folder");
    let open =
        |sysfs: &Path| EnergyMeter::open(sysfs, &EnergyOptions::default()).expect("no error");
    let mut meter = open(nothing.path());
    let reason = meter.about().unavailable.clone().expect("a reason");
    assert!(reason.contains("intel-rapl") && reason.contains("devices/power"), "{reason}");
    assert_eq!(reason.contains("virtual machine"), is_virtual_machine());
    meter.begin();
    assert_eq!(meter.end(), None);
    // One of two packages cannot be read: what the other says would be half of it.
    let fake = server();
    let counter = fake.zone("intel-rapl:1").join("energy_uj");
    fs::remove_file(&counter).expect("removed");
    fs::create_dir(&counter).expect("in its place");
    let meter = open(fake.sysfs.path());
    assert!(!meter.is_there());
    let reason = meter.about().unavailable.clone().expect("a reason");
    assert!(reason.contains("intel-rapl:1/energy_uj"), "{reason}");
    // It could be read when the sweep began, and cannot any more.
    fs::remove_dir(&counter).expect("removed");
    fake.put("intel-rapl:1", 7_000_000);
    let mut meter = open(fake.sysfs.path());
    meter.begin();
    fs::remove_file(&counter).expect("removed");
    let energy = meter.end().expect("tried");
    assert_eq!(energy.gross_joules, None);
    assert!(energy.missing.expect("a reason").contains("intel-rapl:1"));
    // It comes back in the middle of a run: it has the time before in it as well.
    meter.begin();
    fake.put("intel-rapl:1", 9_000_000);
    let energy = meter.end().expect("tried");
    assert_eq!(energy.gross_joules, None);
    meter.begin();
    fake.put("intel-rapl:1", 10_000_000);
    let energy = meter.end().expect("tried");
    assert_eq!(energy.gross_joules, Some(1.0));
    let off = EnergyOptions { source: EnergySourceChoice::Off, ..EnergyOptions::default() };
    let meter = EnergyMeter::open(server().sysfs.path(), &off).expect("no error");
    assert!(!meter.is_there());
}

fn samples(pairs: &[(u64, f64)]) -> Vec<WattSample> {
    pairs.iter().map(|&(ms, watts)| WattSample { at: Duration::from_millis(ms), watts }).collect()
}

#[test]
fn the_trapezoid_rule() {
    let ms = Duration::from_millis;
    let about = |outcome: Result<f64, String>, joules: f64| {
        assert!((outcome.expect("known") - joules).abs() < 1e-9);
    };
    let line = samples(&[(0, 10.0), (1000, 20.0), (3000, 40.0)]);
    about(joules(&line, ms(0), ms(3000)), 15.0 + 60.0);
    // Within one step, and over uneven ones: power is 10 W + 10 W/s.
    about(joules(&line, ms(250), ms(750)), 7.5);
    about(joules(&line, ms(500), ms(2000)), (15.0 + 30.0) / 2.0 * 1.5);
    about(joules(&line, ms(500), ms(500)), 0.0);
    joules(&line, ms(500), ms(3500)).expect_err("not known after the last");
    joules(&line[1..], ms(500), ms(2000)).expect_err("nor before the first");
    joules(&[], ms(0), ms(1)).expect_err("nor of none");
    let silent = samples(&[(0, 10.0), (1000, 10.0), (12_000, 10.0), (13_000, 10.0)]);
    let reason = joules(&silent, ms(500), ms(12_500)).expect_err("silent");
    assert!(reason.contains("11.0 s"), "{reason}");
    about(joules(&silent, ms(100), ms(900)), 8.0);
}

fn meter(command: &str, regex: Option<&str>) -> Result<EnergyMeter, String> {
    let options = EnergyOptions {
        command: Some(command.to_owned()),
        regex: regex.map(str::to_owned),
        scope: Some("the wall".to_owned()),
        ..EnergyOptions::default()
    };
    EnergyMeter::open(Path::new("/nowhere"), &options)
}

#[test]
fn a_meter_s_command() {
    let constant = "echo watts; while :; do echo 50; sleep 0.01; done";
    let mut meter = meter(constant, None).expect("works");
    assert_eq!(meter.about().scope.as_deref(), Some("the wall"));
    let group = meter.group().expect("a group");
    let outside = Instant::now();
    meter.begin();
    let inside = Instant::now();
    std::thread::sleep(Duration::from_millis(50));
    let least = 50.0 * inside.elapsed().as_secs_f64();
    let joules = meter.end().expect("measured").gross_joules.expect("joules");
    let most = 50.0 * outside.elapsed().as_secs_f64();
    assert!(least <= joules && joules <= most, "{least} {joules} {most}");
    drop(meter);
    assert!(!Path::new(&format!("/proc/{group}")).exists());
}

#[test]
fn a_meter_with_a_regex_and_meters_that_do_not_work() {
    let command = "while :; do echo 'power: 20.5 W'; sleep 0.01; done";
    let mut works = meter(command, Some("power: ([0-9.]+)")).expect("works");
    works.begin();
    let energy = works.end().expect("measured");
    assert!(energy.gross_joules.is_some(), "{energy:?}");
    let reason = meter("echo out of order", None).expect_err("no number");
    assert!(reason.contains("ended") && reason.contains("out of order"), "{reason}");
    meter("echo 5", Some("(")).expect_err("no expression");
    // It ends in the middle of the sweep.
    let mut meter = meter("echo 5; read nothing; sleep 0.2", None).expect("works first");
    meter.begin();
    std::thread::sleep(Duration::from_millis(300));
    let energy = meter.end().expect("tried");
    assert_eq!(energy.gross_joules, None);
    assert!(energy.missing.expect("a reason").contains("ended"));
}

proptest::proptest! {
    /// For any start and any number of wraps, the sum equals the energy.
    #[test]
    fn no_wrap_is_missed(
        first in 0..=RANGE_UJ,
        steps in proptest::collection::vec((1_u64..60_000, 0.0..1.0), 1..200),
    ) {
        let mut counter = WrappingCounter::new(RANGE_UJ, first, Duration::ZERO);
        let (mut now, mut uj, mut moved) = (Duration::ZERO, first, 0);
        for (ms, share) in steps {
            now += Duration::from_millis(ms);
            let step = (ms as f64 * share * 2_000_000.0) as u64;
            moved += step;
            uj += step;
            if uj > RANGE_UJ {
                uj -= RANGE_UJ;
            }
            counter.add(uj, now).expect("in time, and possible");
        }
        assert_eq!(counter.total_uj(), moved);
    }
}
