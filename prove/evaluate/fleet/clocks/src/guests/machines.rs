//! Starts, connects and records the guests, and collects their results.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_vm::{
    CableEnd, GuestKernel, GuestOutcome, RunningGuest, SharedMemory, VirtualMachine, cable,
};

use super::scenario::Scenario;
use super::truth::{Clocks, Pause};
use super::{chrony, schedule};

/// Maximum time of a run, beside the time for which it reads clocks.
const RUN_TIMEOUT: Duration = Duration::from_secs(400);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of looks while a guest resumes after a pause.
const RESUME_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Time for which a guest is stopped.
const PAUSE_TIME: Duration = Duration::from_millis(1500);
/// Size of the shared memory, and of each host's line in it. A line has the host's counter, and at `READY_OFFSET`
/// whether it is ready.
const MEMORY_BYTES: u64 = 1 << 16;
const LINE_BYTES: u64 = 64;
const READY_OFFSET: u64 = 8;

pub(super) struct Recorded {
    pub(super) traces: Vec<PathBuf>,
    pub(super) clocks: Vec<Clocks>,
    pub(super) pause: Option<Pause>,
    pub(super) complaints: Vec<String>,
    /// Clock source of each guest's kernel.
    pub(super) clock_source: Vec<String>,
    /// Number of lines in chrony's own log of the clock.
    pub(super) ntp_updates: usize,
}

/// Programs and kernels that all runs need.
pub(super) struct Tools {
    pub(super) kernels: Vec<GuestKernel>,
    pub(super) inside: PathBuf,
    pub(super) chrony: Result<PathBuf, String>,
}

pub(super) fn record(
    harness: &Harness,
    tools: &Tools,
    kernel: &GuestKernel,
    scenario: &Scenario,
    seed: u64,
    seconds: f64,
) -> Result<Recorded, EvaluateError> {
    let memory = SharedMemory::new(MEMORY_BYTES)?;
    let mut cables: Vec<Vec<(String, CableEnd)>> = vec![Vec::new(); scenario.hosts];
    for low in 0..scenario.hosts {
        for high in low + 1..scenario.hosts {
            let network = 8 * low + high;
            let [a, b] = cable()?;
            cables[low].push((format!("10.0.{network}.1/24"), a));
            cables[high].push((format!("10.0.{network}.2/24"), b));
        }
    }
    let mut guests = Vec::new();
    for (host, cables) in cables.into_iter().enumerate() {
        let words = format!("{host} {} {seconds} {} {seed}", scenario.hosts, scenario.per_s);
        let addresses: Vec<&str> = cables.iter().map(|(address, _)| address.as_str()).collect();
        let script = script(scenario, host, &words, &addresses);
        let mut vm = VirtualMachine::new(kernel)
            .program(harness.luc_path())
            .program(&tools.inside)
            .content("/root/schedule", schedule::of(scenario, host, seed, seconds))
            .shared_memory(memory.clone())
            .kernel_argument("clocksource=tsc")
            .timeout(RUN_TIMEOUT + Duration::from_secs_f64(seconds))
            .script(script);
        if scenario.has_pause && host == 1 {
            vm = vm.pausable();
        }
        if let (true, Ok(program)) = (scenario.has_ntp, &tools.chrony) {
            let settings = if host == 0 { chrony::SERVER } else { chrony::CLIENT };
            vm = vm.program(program).content("/root/chrony.conf", settings);
        }
        for (_, end) in cables {
            vm = vm.cable(end);
        }
        guests.push(Some(vm.start()?));
    }
    let mut outcomes: Vec<Option<GuestOutcome>> = vec![None; scenario.hosts];
    let pause = attend(&mut guests, &mut outcomes, &memory, scenario, seconds)?;
    collect(harness, outcomes.into_iter().flatten().collect(), pause)
}

fn script(scenario: &Scenario, host: usize, words: &str, addresses: &[&str]) -> String {
    // Guests of one name that boot at the same time would be one host.
    let mut script =
        format!("echo guest{host} >/proc/sys/kernel/hostname\nmodprobe virtio_net || exit 1\n");
    for (number, address) in addresses.iter().enumerate() {
        script += &format!(
            "ip addr add {address} dev eth{number} && ip link set eth{number} up || exit 1\n"
        );
    }
    if scenario.has_ntp {
        // The server only tells its time, and changes no clock.
        let only_tells = if host == 0 { "-x" } else { "" };
        script += &format!(
            "mkdir -p /run/chrony\nchronyd {only_tells} -u root -d -f /root/chrony.conf >$OUT/chrony 2>&1 &\n"
        );
    }
    // Status 1 says that rows were lost, which the trace says, too.
    script += &format!(
        "for device in /sys/bus/pci/devices/*; do\n\
         if grep -q 0x1110 $device/device; then memory=$device/resource2; fi\ndone\n\
         luc record --fleet --no-calls --quiet --out /run/trace -- inside {words} $memory schedule $OUT\n\
         status=$?\nif [ $status -gt 1 ]; then exit $status; fi\n\
         cat /sys/devices/system/clocksource/clocksource0/current_clocksource >$OUT/source\n\
         cp /run/chrony/*.log $OUT 2>/dev/null\nmkdir $OUT/trace && cp /run/trace/* $OUT/trace\n"
    );
    script
}

/// Waits for all guests, and stops one for a while.
fn attend(
    guests: &mut [Option<RunningGuest>],
    outcomes: &mut [Option<GuestOutcome>],
    memory: &SharedMemory,
    scenario: &Scenario,
    seconds: f64,
) -> Result<Option<Pause>, EvaluateError> {
    const STOPPED_HOST: usize = 1;
    let (mut pause, mut began) = (None, None);
    let half = Duration::from_secs_f64(seconds / 2.0);
    while guests.iter().any(Option::is_some) {
        stop_if_interrupted()?;
        for (guest, outcome) in guests.iter_mut().zip(&mut *outcomes) {
            let Some(mut running) = guest.take() else {
                continue;
            };
            if running.is_running()? {
                *guest = Some(running);
                continue;
            }
            let ended = running.wait()?;
            if ended.status != 0 {
                return Err(EvaluateError::Command {
                    command: "luc record --fleet".to_owned(),
                    how: format!("exit status {} in the guest", ended.status),
                    said: ended.text(),
                });
            }
            *outcome = Some(ended);
        }
        let is_ready = (0..scenario.hosts).all(|host| word(memory, host, READY_OFFSET) != 0);
        if is_ready && began.is_none() {
            began = Some(Instant::now());
        }
        let is_due = began.is_some_and(|began| began.elapsed() > half);
        if let (true, true, None, Some(guest)) =
            (scenario.has_pause, is_due, &pause, &mut guests[STOPPED_HOST])
        {
            pause = Some(stop(guest, STOPPED_HOST, memory, scenario.hosts)?);
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(pause)
}

/// Stops a guest for a while.
fn stop(
    guest: &mut RunningGuest,
    host: usize,
    memory: &SharedMemory,
    hosts: usize,
) -> Result<Pause, EvaluateError> {
    let counters = || -> Vec<u64> { (0..hosts).map(|host| word(memory, host, 0)).collect() };
    let before = counters();
    guest.pause()?;
    thread::sleep(PAUSE_TIME);
    let stopped = word(memory, host, 0);
    guest.resume()?;
    let began = Instant::now();
    let mut wait_until = |is_so: &dyn Fn() -> bool| loop {
        if is_so() {
            return Ok(());
        }
        stop_if_interrupted()?;
        if began.elapsed() > RUN_TIMEOUT || !guest.is_running()? {
            return Err(missing("a guest's counter after its pause"));
        }
        thread::sleep(RESUME_POLL_INTERVAL);
    };
    wait_until(&|| word(memory, host, 0) != stopped)?;
    let went_on = word(memory, host, 0);
    let mut after = counters();
    // A value that is written the second time from now on was read after the guest went on.
    for _ in 0..2 {
        let last = after;
        wait_until(&|| counters().iter().zip(&last).all(|(now, last)| now != last))?;
        after = counters();
    }
    Ok(Pause { host, stopped: [stopped, went_on], before, after })
}

/// Returns a word of a host's line; 0 if it cannot be read.
fn word(memory: &SharedMemory, host: usize, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    let at = host as u64 * LINE_BYTES + offset;
    match memory.file().read_exact_at(&mut bytes, at) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

/// Writes the traces to files, and reads the clocks.
fn collect(
    harness: &Harness,
    outcomes: Vec<GuestOutcome>,
    pause: Option<Pause>,
) -> Result<Recorded, EvaluateError> {
    let mut recorded = Recorded {
        traces: Vec::new(),
        clocks: Vec::new(),
        pause,
        complaints: Vec::new(),
        clock_source: Vec::new(),
        ntp_updates: 0,
    };
    for (host, outcome) in outcomes.iter().enumerate() {
        let trace = harness.path(&format!("guest{host}"));
        if trace.exists() {
            fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
        }
        fs::create_dir_all(&trace).map_err(EvaluateError::file("make", &trace))?;
        let files = outcome.files.iter();
        for (name, bytes) in
            files.filter_map(|(name, bytes)| Some((name.strip_prefix("trace/")?, bytes)))
        {
            let to = trace.join(name);
            fs::write(&to, bytes).map_err(EvaluateError::file("write", &to))?;
        }
        let log = outcome.file("tracking.log").unwrap_or_default();
        // All other lines are heads.
        recorded.ntp_updates += log.lines().filter(|line| line.contains("10.0.1.1")).count();
        recorded.traces.push(trace);
        recorded.clocks.push(Clocks::of(outcome)?);
        recorded.complaints.extend(outcome.complaints().into_iter().map(str::to_owned));
        recorded.clock_source.push(outcome.file("source").unwrap_or_default().trim().to_owned());
    }
    Ok(recorded)
}
