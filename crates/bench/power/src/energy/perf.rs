//! RAPL as events of perf: the device `power`, whose counters the kernel keeps from wrapping.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::FromRawFd as _;
use std::path::Path;

use luc_host::sysfs;

use super::{EnergySource, scope_of};

/// The kernel's `struct perf_event_attr`, as far as its first version goes (64 bytes); it takes that for all time.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// An event of the device in sysfs.
#[derive(Debug, Clone, PartialEq)]
struct PerfEvent {
    config: u64,
    /// Joules of a count.
    scale: f64,
}

/// An event on one package.
#[derive(Debug)]
struct PerfCounter {
    file: File,
    scale: f64,
    begun: u64,
}

/// RAPL events of perf: the packages, and DRAM if it has an event.
#[derive(Debug)]
pub(super) struct PerfRaplEvents {
    counts: Vec<PerfCounter>,
    has_dram: bool,
}

impl PerfRaplEvents {
    /// Opens all events on all packages. Errors: why not.
    pub(super) fn open(sysfs: &Path) -> Result<Self, String> {
        let device = sysfs.join("bus/event_source/devices/power");
        if !device.is_dir() {
            return Err(format!("no {}", device.display()));
        }
        let read = |name: &str| {
            let path = device.join(name);
            sysfs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let kind = read("type")?;
        let wrong = |_| format!("{}/type is '{kind}', no number", device.display());
        let kind: u32 = kind.parse().map_err(wrong)?;
        // One processor of each package.
        let mask = read("cpumask")?;
        let processors = list(&mask)
            .ok_or_else(|| format!("{}/cpumask is '{mask}', no list", device.display()))?;
        let has_dram = device.join("events/energy-ram").exists();
        let names = [("energy-pkg", true), ("energy-ram", has_dram)];
        let mut counts = Vec::new();
        for (name, _) in names.iter().filter(|(_, is_there)| *is_there) {
            let about = |suffix: &str| read(&format!("events/{name}{suffix}"));
            let event = event(&about("")?, &about(".scale")?, &about(".unit")?)
                .map_err(|reason| format!("{}/events/{name}: {reason}", device.display()))?;
            for &processor in &processors {
                let file = open(kind, event.config, processor)
                    .map_err(|error| format!("perf event power/{name}: {}", advice(&error)))?;
                counts.push(PerfCounter { file, scale: event.scale, begun: 0 });
            }
        }
        Ok(Self { counts, has_dram })
    }
}

impl EnergySource for PerfRaplEvents {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn scope(&self) -> String {
        scope_of(self.has_dram)
    }

    fn begin(&mut self) -> Result<(), String> {
        for count in &mut self.counts {
            count.begun = count.read()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<f64, String> {
        let of =
            |count: &PerfCounter| Ok(count.read()?.wrapping_sub(count.begun) as f64 * count.scale);
        self.counts.iter().map(of).sum()
    }
}

impl PerfCounter {
    fn read(&self) -> Result<u64, String> {
        let mut bytes = [0; 8];
        (&self.file)
            .read_exact(&mut bytes)
            .map_err(|error| format!("cannot read a perf event: {error}"))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// Parses `event=0x02`, `2.3283064365386962890625e-10`, `Joules`. `event` is the lowest byte of `config`.
fn event(text: &str, scale: &str, unit: &str) -> Result<PerfEvent, String> {
    let config = text
        .strip_prefix("event=0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .filter(|config| *config <= 0xff)
        .ok_or_else(|| format!("'{text}' is no event of this device"))?;
    let scale = scale
        .parse()
        .ok()
        .filter(|scale: &f64| scale.is_finite() && *scale > 0.0)
        .ok_or_else(|| format!("its scale is '{scale}'"))?;
    if unit != "Joules" {
        return Err(format!("its unit is '{unit}', not Joules"));
    }
    Ok(PerfEvent { config, scale })
}

/// Parses a list of processors, as `0,18` or `0-1,4`.
fn list(text: &str) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        if first < 0 || last < first || last - first > 4096 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

fn open(kind: u32, config: u64, processor: i32) -> io::Result<File> {
    let attributes =
        Attributes { kind, size: size_of::<Attributes>() as u32, config, ..Attributes::default() };
    let (every_process, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
    let close_on_exec: libc::c_ulong = 8;
    // SAFETY: the pointer is to a live struct of the size that is in it; the kernel only reads it.
    let number = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_process,
            processor,
            no_group,
            close_on_exec,
        )
    };
    let number = libc::c_int::try_from(number).unwrap_or(-1);
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel has just given, and that nothing else owns.
    Ok(unsafe { File::from_raw_fd(number) })
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}: it needs root, or kernel.perf_event_paranoid below 1")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_sysfs_says_of_events() {
        let scale = "2.3283064365386962890625e-10";
        let found = event("event=0x02", scale, "Joules").expect("as it is");
        assert_eq!(found.config, 2);
        assert_eq!(found.scale, 0.5_f64.powi(32));
        for (text, scale, unit) in [
            ("event=0x02,x=1", scale, "Joules"),
            ("config=0x02", scale, "Joules"),
            ("event=0x02", "0", "Joules"),
            ("event=0x02", "nan", "Joules"),
            ("event=0x02", scale, "Watts"),
        ] {
            event(text, scale, unit).expect_err(text);
        }
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("0,18"), Some(vec![0, 18]));
        assert_eq!(list("0-1,4"), Some(vec![0, 1, 4]));
        for text in ["", "x", "3-1", "-1", "0-99999"] {
            assert_eq!(list(text), None, "{text}");
        }
    }

    /// The device is a fake whose events are the kernel's clock. So the code runs as with a real device.
    #[test]
    fn events_are_opened_scaled_and_summed() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let device = sysfs.path().join("bus/event_source/devices/power");
        fs::create_dir_all(device.join("events")).expect("made");
        let put = |name: &str, text: &str| fs::write(device.join(name), text).expect("written");
        put("type", "1\n");
        put("cpumask", "0\n");
        for (name, scale) in [("energy-pkg", "1e-9\n"), ("energy-ram", "2e-9\n")] {
            put(&format!("events/{name}"), "event=0x00\n");
            put(&format!("events/{name}.scale"), scale);
            put(&format!("events/{name}.unit"), "Joules\n");
        }
        let mut perf = match PerfRaplEvents::open(sysfs.path()) {
            Err(reason) if reason.contains("needs root") => {
                luc_testkit::skipped!("{reason}");
                return;
            }
            perf => perf.expect("opened"),
        };
        assert!(perf.scope().contains("and DRAM"));
        let before = std::time::Instant::now();
        perf.begin().expect("begun");
        let begun = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let least = begun.elapsed().as_secs_f64() * 3.0;
        let joules = perf.end().expect("ended");
        let most = before.elapsed().as_secs_f64() * 3.0;
        // Both clocks are the kernel's, and not quite the same.
        let is_right = joules >= least * 0.5 && joules <= most * 2.0;
        assert!(is_right, "{least} {joules} {most}");
        put("events/energy-ram.unit", "Furlongs\n");
        let reason = PerfRaplEvents::open(sysfs.path()).expect_err("refused");
        assert!(reason.contains("Furlongs"), "{reason}");
    }
}
