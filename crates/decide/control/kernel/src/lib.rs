//! The integer control law of `luc.ko` (`kernel/luc/control*.c`), compiled in user space.
//!
//! Only for tests: they feed it and its reference, `luc-control`, the same input and compare the output.
//! The structures are those of `kernel/luc/control.h`.

use std::fmt;

/// Largest number of arrivals that are told apart (`LUC_MAX_PARTICIPANTS`).
pub const MAX_PARTICIPANTS: usize = 512;

/// Gains of the kernel's PID controller, in thousandths.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelGains {
    pub kp_milli: u32,
    pub ki_milli: u32,
    pub kd_milli: u32,
}

impl KernelGains {
    pub const PAPER: Self = Self { kp_milli: 800, ki_milli: 250, kd_milli: 250 };
}

/// The kernel's delay that a PID controller steers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelSteeredDelay {
    integral: i64,
    previous_error: i64,
    delay_ps: i64,
}

/// The kernel's median return times, in order of return.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelReturnProfile {
    returns_ns: [u32; MAX_PARTICIPANTS],
    known: u32,
}

impl Default for KernelReturnProfile {
    fn default() -> Self {
        Self { returns_ns: [0; MAX_PARTICIPANTS], known: 0 }
    }
}

/// The kernel's number of callers worth waiting for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelSetPoint {
    /// Number of callers to wait for.
    pub callers: u32,
    /// Expected return of the last of them, ns after the end of a commit.
    pub return_ns: u64,
}

/// The kernel's paired ratios of gated to ungated rates.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelRatePairs {
    count: u32,
    mean: i64,
    squares: i64,
}

/// The kernel's verdict on its pairs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelEngagementVerdict {
    More,
    Pays,
    DoesNotPay,
}

/// The kernel's growing time between checks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelBackoff {
    interval_ns: u64,
}

#[repr(C)]
#[derive(Debug)]
struct RawEpoch {
    end_ns: u64,
    completions: u64,
    participants: u32,
    commit_ns: u64,
    released: u32,
    arrivals_ns: *const u32,
    arrivals: u32,
}

/// The end of a commit, as the kernel's law takes it.
#[derive(Clone, Copy, Debug)]
pub struct KernelEpoch<'a> {
    pub end_ns: u64,
    pub completions: u64,
    /// Number of distinct callers in the last window.
    pub participants: u32,
    pub commit_ns: u64,
    /// Number of callers in the commit, if it was held.
    pub released: u32,
    /// Arrivals since the previous end, ns after it.
    pub arrivals_ns: &'a [u32],
}

/// Actions that the kernel's law chose until the next commit ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPlan {
    pub held: bool,
    /// Number of callers at which a commit starts.
    pub set_point: u32,
    /// Expected return of the last of them, ns after the end of a commit.
    pub return_ns: u64,
    /// Time for which a short commit waits beyond that, ns.
    pub patience_ns: u64,
    /// Commit time that the plan assumes, ns.
    pub commit_ns: u64,
}

#[repr(C)]
struct RawAuto([u8; 0]);

unsafe extern "C" {
    fn luc_steered_delay_restart(delay: &mut KernelSteeredDelay, delay_ns: u64);
    fn luc_steered_delay_ns(delay: &KernelSteeredDelay) -> u64;
    fn luc_steered_delay_update(
        delay: &mut KernelSteeredDelay,
        gains: &KernelGains,
        set_point: u32,
        measured: u32,
        ns_per_request: u64,
        low_ns: u64,
        high_ns: u64,
    ) -> u64;
    fn luc_returns_observe(
        returns: &mut KernelReturnProfile,
        arrivals_ns: *const u32,
        arrivals: u32,
        span_ns: u64,
    );
    fn luc_returns_best(
        returns: &KernelReturnProfile,
        commit_ns: u64,
        best: &mut KernelSetPoint,
    ) -> bool;
    fn luc_worth_holding_ns(commit_ns: u64, since_end_ns: u64, gathered: u32, missing: u32) -> u64;
    fn luc_pairs_add(
        pairs: &mut KernelRatePairs,
        rate_with: u64,
        rate_without: u64,
    ) -> KernelEngagementVerdict;
    fn luc_backoff_lengthen(backoff: &mut KernelBackoff, factor: u64) -> u64;
    fn luc_auto_on_epoch(auto: *mut RawAuto, epoch: &RawEpoch) -> KernelPlan;
    fn luc_plan_deadline_ns(
        plan: &KernelPlan,
        end_ns: u64,
        first_ns: u64,
        last_ns: u64,
        now_ns: u64,
        gathered: u32,
    ) -> u64;
    fn luc_law_auto_bytes() -> usize;
    fn luc_law_auto_phase(auto: *const RawAuto) -> u32;
    fn luc_law_auto_reason(auto: *const RawAuto) -> u32;
}

impl KernelSteeredDelay {
    pub fn restart(&mut self, delay_ns: u64) {
        // SAFETY: plain numbers behind a reference.
        unsafe { luc_steered_delay_restart(self, delay_ns) }
    }

    pub fn delay_ns(&self) -> u64 {
        // SAFETY: plain numbers behind a reference.
        unsafe { luc_steered_delay_ns(self) }
    }

    /// Feeds a commit's size. Returns the delay for the next commit.
    pub fn update(
        &mut self,
        gains: &KernelGains,
        set_point: u32,
        measured: u32,
        ns_per_request: u64,
        bounds_ns: (u64, u64),
    ) -> u64 {
        let (low_ns, high_ns) = bounds_ns;
        // SAFETY: plain numbers behind references.
        unsafe {
            luc_steered_delay_update(
                self,
                gains,
                set_point,
                measured,
                ns_per_request,
                low_ns,
                high_ns,
            )
        }
    }
}

impl KernelReturnProfile {
    /// Takes the arrivals between two ends of commits.
    pub fn observe(&mut self, arrivals_ns: &[u32], span_ns: u64) {
        let arrivals = u32::try_from(arrivals_ns.len()).unwrap_or(u32::MAX);
        // SAFETY: the C side reads `arrivals` numbers at most.
        unsafe { luc_returns_observe(self, arrivals_ns.as_ptr(), arrivals, span_ns) }
    }

    /// Set point that serves the most callers per time.
    pub fn best(&self, commit_ns: u64) -> Option<KernelSetPoint> {
        let mut best = KernelSetPoint::default();
        // SAFETY: plain numbers behind references.
        unsafe { luc_returns_best(self, commit_ns, &mut best) }.then_some(best)
    }
}

/// Time for which a commit is worth holding for late callers.
pub fn worth_holding_ns(commit_ns: u64, since_end_ns: u64, gathered: u32, missing: u32) -> u64 {
    // SAFETY: numbers only.
    unsafe { luc_worth_holding_ns(commit_ns, since_end_ns, gathered, missing) }
}

impl KernelRatePairs {
    pub fn add(&mut self, rate_with: u64, rate_without: u64) -> KernelEngagementVerdict {
        // SAFETY: plain numbers behind a reference.
        unsafe { luc_pairs_add(self, rate_with, rate_without) }
    }

    /// Mean logarithm of the rate with holding over the rate without.
    pub fn mean_log(&self) -> f64 {
        self.mean as f64 / f64::from(1 << 20)
    }
}

impl KernelBackoff {
    pub fn lengthen(&mut self, factor: u64) -> u64 {
        // SAFETY: a plain number behind a reference.
        unsafe { luc_backoff_lengthen(self, factor) }
    }
}

impl KernelPlan {
    /// Start of a commit that is short of callers.
    pub fn deadline_ns(
        &self,
        end_ns: u64,
        first_ns: u64,
        last_ns: u64,
        now_ns: u64,
        gathered: u32,
    ) -> u64 {
        // SAFETY: plain numbers behind a reference.
        unsafe { luc_plan_deadline_ns(self, end_ns, first_ns, last_ns, now_ns, gathered) }
    }
}

/// `struct luc_auto`, all zeros at first.
pub struct KernelAuto(Vec<u64>);

impl Default for KernelAuto {
    fn default() -> Self {
        // SAFETY: no arguments.
        Self(vec![0; unsafe { luc_law_auto_bytes() }.div_ceil(8)])
    }
}

impl fmt::Debug for KernelAuto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Auto {{ phase: {}, reason: {} }}", self.phase(), self.reason())
    }
}

impl KernelAuto {
    /// Takes the end of a commit and returns the plan until the next.
    pub fn on_epoch(&mut self, epoch: &KernelEpoch<'_>) -> KernelPlan {
        let raw = RawEpoch {
            end_ns: epoch.end_ns,
            completions: epoch.completions,
            participants: epoch.participants,
            commit_ns: epoch.commit_ns,
            released: epoch.released,
            arrivals_ns: epoch.arrivals_ns.as_ptr(),
            arrivals: u32::try_from(epoch.arrivals_ns.len()).unwrap_or(u32::MAX),
        };
        // SAFETY: the memory is as large and aligned as the structure, and the arrivals outlive the call.
        unsafe { luc_auto_on_epoch(self.0.as_mut_ptr().cast(), &raw) }
    }

    /// `enum luc_phase`, in the order of the reference's `GatePhase`.
    pub fn phase(&self) -> u32 {
        // SAFETY: as above.
        unsafe { luc_law_auto_phase(self.0.as_ptr().cast()) }
    }

    /// `enum luc_reason`, in the order of the reference's `GateReason`.
    pub fn reason(&self) -> u32 {
        // SAFETY: as above.
        unsafe { luc_law_auto_reason(self.0.as_ptr().cast()) }
    }
}
