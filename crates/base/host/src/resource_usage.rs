//! Resources that processes have used: processor time, memory, faults, switches (getrusage(2)).

use std::time::Duration;

/// Resources that processes have used since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    pub user: Duration,
    pub system: Duration,
    /// Maximum of resident memory of one of them, in bytes.
    pub peak_bytes: u64,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Number of times that a thread gave up its processor.
    pub voluntary_switches: u64,
    /// Number of times that a processor was taken from a thread.
    pub involuntary_switches: u64,
}

impl ResourceUsage {
    /// Usage of all threads of this process, also of those that have ended.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// Usage of the children of this process that have ended and were waited for, and of their children.
    #[must_use]
    pub fn of_children() -> Self {
        Self::of(libc::RUSAGE_CHILDREN)
    }

    fn of(whom: libc::c_int) -> Self {
        // SAFETY: getrusage fills a struct of plain numbers, for which all zeros are a value.
        let usage = unsafe {
            let mut usage = std::mem::zeroed::<libc::rusage>();
            libc::getrusage(whom, &raw mut usage);
            usage
        };
        let time = |time: libc::timeval| {
            let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
            seconds + Duration::from_micros(time.tv_usec.unsigned_abs())
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
            minor_faults: usage.ru_minflt.unsigned_abs(),
            major_faults: usage.ru_majflt.unsigned_abs(),
            voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
            involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        }
    }

    #[must_use]
    pub fn processor_s(&self) -> f64 {
        (self.user + self.system).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn children_count_when_they_have_ended() {
        let before = ResourceUsage::of_children();
        let busy = "n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done";
        let status = Command::new("sh").args(["-c", busy]).status();
        assert!(status.expect("a shell").success());
        let after = ResourceUsage::of_children();
        assert!(after.processor_s() > before.processor_s(), "{after:?}");
        assert!(after.peak_bytes > 1 << 18 && after.minor_faults > 0, "{after:?}");
    }

    #[test]
    fn a_process_counts_what_it_does_itself() {
        let before = ResourceUsage::of_this_process();
        std::thread::yield_now();
        let touched = vec![1_u8; 8 << 20];
        let after = ResourceUsage::of_this_process();
        assert!(touched.iter().all(|byte| *byte == 1));
        assert!(after.minor_faults > before.minor_faults, "{before:?} {after:?}");
        assert!(after.peak_bytes >= 8 << 20, "{after:?}");
    }
}
