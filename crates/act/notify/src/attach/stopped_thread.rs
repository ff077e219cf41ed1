//! A thread that is stopped and makes system calls for us (ptrace(2)), on x86-64.
//!
//! Nothing of the program is changed. The thread executes a system-call instruction in the vDSO with our registers,
//! and gets its own back at the end. All signals but SIGKILL and SIGSTOP wait meanwhile. The kernel restarts an
//! interrupted call as after a stop by a debugger; `epoll_wait` and its like return EINTR.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use luc_gate::writeback_errors;
use rustix::io::Errno;

use super::error::AttachError;

/// Time that a thread may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

const EVENT_STOP: i32 = 128;

/// The stop at a system call's beginning and end, with PTRACE_O_TRACESYSGOOD.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// `cs` of 64-bit code.
const CODE_64: u64 = 0x33;

/// A stopped thread. It is dropped without [`go_on`](Self::go_on) only if the thread is gone.
#[derive(Debug)]
pub(super) struct StoppedThread {
    thread: i32,
    /// Its registers at the stop, and its blocked signals.
    registers: libc::user_regs_struct,
    mask: u64,
    /// Address at which it makes system calls.
    instruction: u64,
    memory: File,
}

impl StoppedThread {
    /// Stops the first thread of a process.
    pub(super) fn stop(process: i32) -> Result<Self, AttachError> {
        let gone = |_: io::Error| AttachError::Gone(process);
        let proc = |name: &str| format!("/proc/{process}/{name}");
        let maps = std::fs::read_to_string(proc("maps")).map_err(gone)?;
        let memory = File::options().read(true).write(true).open(proc("mem"));
        let memory = memory.map_err(|error| AttachError::denied(process, &error))?;
        let options = libc::PTRACE_O_TRACESYSGOOD as usize;
        ptrace(libc::PTRACE_SEIZE, process, 0, options)
            .map_err(|errno| AttachError::denied(process, &errno.into()))?;
        // From here on the end of this process lets it run on.
        let found = Self::take_over(process, &maps, memory);
        if found.is_err() {
            let _ = ptrace(libc::PTRACE_DETACH, process, 0, 0);
        }
        found
    }

    fn take_over(process: i32, maps: &str, memory: File) -> Result<Self, AttachError> {
        let lost = |_| AttachError::Gone(process);
        ptrace(libc::PTRACE_INTERRUPT, process, 0, 0).map_err(lost)?;
        until_stop(process, libc::PTRACE_CONT, is_event_stop)?;
        let registers = registers(process).map_err(lost)?;
        if registers.cs != CODE_64 {
            return Err(AttachError::Narrow(process));
        }
        let instruction = instruction(maps, &memory).ok_or(AttachError::NoInstruction(process))?;
        let mut mask = 0_u64;
        ptrace(libc::PTRACE_GETSIGMASK, process, 8, (&raw mut mask).addr()).map_err(lost)?;
        let all = u64::MAX;
        ptrace(libc::PTRACE_SETSIGMASK, process, 8, (&raw const all).addr()).map_err(lost)?;
        Ok(Self { thread: process, registers, mask, instruction, memory })
    }

    /// Makes the thread make a system call.
    pub(super) fn call(
        &self,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<Result<u64, Errno>, AttachError> {
        let lost = |_| AttachError::Gone(self.thread);
        let [a, b, c, d, e, f] = arguments;
        let asked = libc::user_regs_struct {
            rip: self.instruction,
            rax: number as u64,
            // None that would be made again.
            orig_rax: u64::MAX,
            rdi: a,
            rsi: b,
            rdx: c,
            r10: d,
            r8: e,
            r9: f,
            ..self.registers
        };
        set_registers(self.thread, &asked).map_err(lost)?;
        for _begin_and_end in 0..2 {
            ptrace(libc::PTRACE_SYSCALL, self.thread, 0, 0).map_err(lost)?;
            let is_wanted = |status| libc::WSTOPSIG(status) == SYSCALL_STOP;
            until_stop(self.thread, libc::PTRACE_SYSCALL, is_wanted)?;
        }
        let returned = registers(self.thread).map_err(lost)?.rax as i64;
        Ok(match returned {
            -4095..=-1 => Err(Errno::from_raw_os_error(-returned as i32)),
            returned => Ok(returned as u64),
        })
    }

    /// Writes to the thread's memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Lets the thread go on where it was stopped.
    pub(super) fn go_on(self) -> Result<(), AttachError> {
        let lost = |_| AttachError::Gone(self.thread);
        // Only in such a stop the kernel makes a call again that it has interrupted.
        ptrace(libc::PTRACE_INTERRUPT, self.thread, 0, 0).map_err(lost)?;
        ptrace(libc::PTRACE_CONT, self.thread, 0, 0).map_err(lost)?;
        until_stop(self.thread, libc::PTRACE_CONT, is_event_stop)?;
        set_registers(self.thread, &self.registers).map_err(lost)?;
        let mask = (&raw const self.mask).addr();
        ptrace(libc::PTRACE_SETSIGMASK, self.thread, 8, mask).map_err(lost)?;
        ptrace(libc::PTRACE_DETACH, self.thread, 0, 0).map_err(lost)?;
        Ok(())
    }
}

fn is_event_stop(status: i32) -> bool {
    status >> 16 == EVENT_STOP
}

/// Waits for a wanted stop. From other stops the thread goes on by `request`, with their signal.
fn until_stop(
    thread: i32,
    request: libc::c_uint,
    is_wanted: impl Fn(i32) -> bool,
) -> Result<(), AttachError> {
    let begun = Instant::now();
    loop {
        let mut status = 0;
        let flags = libc::__WALL | libc::WNOHANG;
        // SAFETY: `status` is valid for writes.
        let waited = unsafe { libc::waitpid(thread, &raw mut status, flags) };
        if waited == 0 {
            if begun.elapsed() > STOP_TIMEOUT {
                return Err(AttachError::Stuck(thread));
            }
            std::thread::sleep(Duration::from_micros(50));
            continue;
        }
        if waited < 0 || !libc::WIFSTOPPED(status) {
            return Err(AttachError::Gone(thread));
        }
        if is_wanted(status) {
            return Ok(());
        }
        let signal = match libc::WSTOPSIG(status) {
            _ if is_event_stop(status) => 0,
            signal => signal,
        };
        ptrace(request, thread, 0, signal as usize).map_err(|_| AttachError::Gone(thread))?;
    }
}

/// Address of an instruction of the vDSO that makes a system call.
fn instruction(maps: &str, memory: &File) -> Option<u64> {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    let from = u64::from_str_radix(from, 16).ok()?;
    let to = u64::from_str_radix(to, 16).ok()?;
    let mut code = vec![0; usize::try_from(to.checked_sub(from)?).ok()?.min(1 << 16)];
    memory.read_exact_at(&mut code, from).ok()?;
    let at = code.windows(2).position(|two| two == SYSCALL)?;
    Some(from + at as u64)
}

fn registers(thread: i32) -> Result<libc::user_regs_struct, Errno> {
    // SAFETY: plain integers, for which all bits are valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS, thread, 0, (&raw mut registers).addr())?;
    Ok(registers)
}

fn set_registers(thread: i32, registers: &libc::user_regs_struct) -> Result<(), Errno> {
    let registers = std::ptr::from_ref(registers).addr();
    ptrace(libc::PTRACE_SETREGS, thread, 0, registers)
}

fn ptrace(request: libc::c_uint, thread: i32, address: usize, data: usize) -> Result<(), Errno> {
    // SAFETY: the requests used here read and write what their callers own, of the size that the kernel expects.
    let result = unsafe { libc::syscall(libc::SYS_ptrace, request, thread, address, data) };
    if result < 0 {
        return Err(Errno::from_raw_os_error(writeback_errors::errno()));
    }
    Ok(())
}
