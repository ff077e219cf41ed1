//! QEMU's command line.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::mode::Mode;
use crate::tools;

/// What a machine is made of.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) mode: Mode,
    pub(crate) memory_mib: u32,
    pub(crate) image: &'a Path,
    pub(crate) initramfs: &'a str,
    pub(crate) console: &'a str,
    pub(crate) results: &'a str,
    pub(crate) output: &'a str,
    pub(crate) disks: &'a [PathBuf],
    pub(crate) arguments: &'a [String],
}

/// What every kernel is told. A bug, a hung task or a lock-up is a panic, and a panic ends the machine:
/// the caller hears of it at once.
const ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off log_buf_len=4M \
    hung_task_panic=1 tsc=reliable no_timer_check rdinit=/init";

/// What makes two boots the same: nothing random, no watchdog.
const REPEATABLE: &str = "norandmaps random.trust_bootloader=off random.trust_cpu=off nowatchdog";

impl Machine<'_> {
    /// The command that starts it.
    pub(crate) fn command(&self) -> Result<Command, Error> {
        let mut qemu = Command::new(tools::find("qemu-system-x86_64")?);
        qemu.args([
            "-M",
            "q35",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        qemu.args(["-m", &self.memory_mib.to_string()]);
        match self.mode {
            Mode::Function { processors } => {
                qemu.args([
                    "-accel",
                    "tcg,thread=multi",
                    "-cpu",
                    "max",
                    "-smp",
                    &processors.to_string(),
                ]);
            }
            Mode::VirtualTime { shift } => {
                // A repeated string instruction counts once for each byte without erms and fsrm off: then
                // the kernel copies by words.
                qemu.args([
                    "-accel",
                    "tcg",
                    "-cpu",
                    "max,-rdrand,-rdseed,-erms,-fsrm",
                    "-smp",
                    "1",
                    "-seed",
                    "1",
                ]);
                qemu.args(["-icount", &format!("shift={shift},align=off,sleep=off")]);
                qemu.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
            }
        }
        qemu.arg("-kernel")
            .arg(self.image)
            .args(["-initrd", self.initramfs]);
        qemu.args(["-append", &self.kernel_arguments()]);
        for (name, path) in [
            ("console", self.console),
            ("results", self.results),
            ("output", self.output),
        ] {
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
        Ok(qemu)
    }

    fn kernel_arguments(&self) -> String {
        let mut arguments = ARGUMENTS.to_owned();
        if matches!(self.mode, Mode::VirtualTime { .. }) {
            arguments = format!("{arguments} {REPEATABLE}");
        }
        for argument in self.arguments {
            arguments = format!("{arguments} {argument}");
        }
        arguments
    }
}
