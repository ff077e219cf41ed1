//! Command line of QEMU for one machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::architecture::Architecture;
use crate::error::Error;
use crate::guest_network::CableEnd;
use crate::guest_time::GuestTime;
use crate::qemu::Qemu;
use crate::shared_memory::SharedMemory;

/// Parts of a machine that QEMU's command line describes.
#[derive(Debug)]
pub(crate) struct QemuCommandLine<'a> {
    pub(crate) qemu: &'a Qemu,
    pub(crate) architecture: Architecture,
    pub(crate) mode: GuestTime,
    pub(crate) memory_mib: u32,
    pub(crate) image: &'a Path,
    pub(crate) initramfs: &'a str,
    pub(crate) console: &'a str,
    pub(crate) results: &'a str,
    pub(crate) output: &'a str,
    pub(crate) turns: &'a str,
    pub(crate) disks: &'a [PathBuf],
    pub(crate) cables: &'a [CableEnd],
    pub(crate) shared_memory: Option<&'a SharedMemory>,
    pub(crate) arguments: &'a [String],
}

/// Arguments for every kernel. A bug or a hung task is a panic. A panic ends the machine, so the caller hears of it
/// at once.
///
/// A busy host may leave a processor without time for long, and the limits for lock-ups allow for that.
const KERNEL_ARGUMENTS: &str = "quiet panic=-1 oops=panic log_buf_len=4M hung_task_panic=1 watchdog_thresh=60 \
    rcupdate.rcu_cpu_stall_timeout=120 rdinit=/init";

/// Arguments that make two boots the same: nothing random, no watchdog.
const REPEATABLE_ARGUMENTS: &str =
    "norandmaps random.trust_bootloader=off random.trust_cpu=off nowatchdog";

/// Time that one of several processors runs before the next has its turn, µs of virtual time. The default is up to 1
/// ms: a whole open and fsync.
const TURN_US: u32 = 10;
/// Time that processors in parallel run before they wait for each other, ns of virtual time.
const QUANTUM_NS: u32 = 5000;

impl QemuCommandLine<'_> {
    /// Returns the command that starts the machine.
    pub(crate) fn command(&self) -> Result<Command, Error> {
        let mut qemu = self.qemu.command();
        qemu.args([
            "-M",
            self.architecture.machine(),
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        qemu.args(["-m", &self.memory_mib.to_string()]);
        match self.mode {
            GuestTime::Function { processors } => {
                let thread = if self.qemu.patches_code_safely() { "multi" } else { "single" };
                qemu.args(["-accel", &format!("tcg,thread={thread}")]);
                qemu.args(["-cpu", self.architecture.processor()]);
                qemu.args(["-smp", &processors.to_string()]);
            }
            GuestTime::VirtualTime { shift, processors } => {
                qemu.args(["-cpu", self.architecture.repeatable_processor(), "-seed", "1"]);
                qemu.args(["-icount", &format!("shift={shift},align=off,sleep=off")]);
                qemu.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
                self.processors(&mut qemu, processors)?;
            }
        }
        qemu.arg("-kernel").arg(self.image).args(["-initrd", self.initramfs]);
        qemu.args(["-append", &self.kernel_arguments()]);
        for (name, path) in
            [("console", self.console), ("results", self.results), ("output", self.output)]
        {
            qemu.args(["-chardev", &format!("file,id={name},path={path}")]);
        }
        qemu.args(["-serial", "chardev:console", "-device", "virtio-serial-pci"]);
        for (number, name) in [(1, "results"), (2, "output")] {
            qemu.args([
                "-device",
                &format!("virtserialport,chardev={name},name=luc.{name},nr={number}"),
            ]);
        }
        for (index, disk) in self.disks.iter().enumerate() {
            // A comma ends an option's value; doubled it is one.
            let path = disk.to_string_lossy().replace(',', ",,");
            qemu.args([
                "-drive",
                &format!("file={path},format=raw,if=none,id=disk{index},cache=writeback"),
            ]);
            qemu.args(["-device", &format!("virtio-blk-pci,drive=disk{index}")]);
        }
        for (number, end) in self.cables.iter().enumerate() {
            end.plug(number, &mut qemu);
        }
        if let Some(memory) = self.shared_memory {
            memory.attach(&mut qemu);
        }
        Ok(qemu)
    }

    /// Adds the processors in virtual time.
    fn processors(&self, qemu: &mut Command, processors: u32) -> Result<(), Error> {
        qemu.args(["-accel", "tcg,thread=single", "-smp", &processors.to_string()]);
        if processors == 1 {
            return Ok(());
        }
        if !self.qemu.runs_several() {
            return Err(Error::OldQemu { qemu: self.qemu.to_string() });
        }
        if self.qemu.is_parallel() {
            qemu.env("QEMU_ICOUNT_QUANTUM", QUANTUM_NS.to_string());
            return Ok(());
        }
        qemu.args(["-name", "guest,debug-threads=on"]).env("LD_PRELOAD", self.turns);
        // A processor's turn lasts until the next timer of any clock, divided by the number of processors. A filter of
        // a network that has no members has such a timer, and the guest does not see it.
        qemu.args(["-netdev", "hubport,id=turns,hubid=0"]);
        let interval_us = TURN_US * processors;
        qemu.args([
            "-object",
            &format!("filter-buffer,id=turn,netdev=turns,interval={interval_us}"),
        ]);
        Ok(())
    }

    fn kernel_arguments(&self) -> String {
        let mut arguments = format!("{} {KERNEL_ARGUMENTS}", self.architecture.kernel_arguments());
        if matches!(self.mode, GuestTime::VirtualTime { .. }) {
            arguments = format!("{arguments} {REPEATABLE_ARGUMENTS}");
        }
        for argument in self.arguments {
            arguments = format!("{arguments} {argument}");
        }
        arguments
    }
}
