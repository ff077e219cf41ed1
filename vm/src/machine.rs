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

/// What every kernel is told. A bug or a hung task is a panic, and a panic ends the machine:
/// the caller hears of it at once. A busy host may leave a processor without time for long: the limits
/// for lock-ups allow for that.
const ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off log_buf_len=4M \
    hung_task_panic=1 watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 tsc=reliable no_timer_check \
    rdinit=/init";

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
                let thread = if patches_code_safely()? {
                    "multi"
                } else {
                    "single"
                };
                qemu.args(["-accel", &format!("tcg,thread={thread}"), "-cpu", "max"]);
                qemu.args(["-smp", &processors.to_string()]);
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

/// Whether processors may run on threads of their own. QEMU before 8.1 can go on executing an instruction
/// that another processor replaced while it was being translated; it locks pages before translation since
/// then. The kernel replaces instructions when tracing is switched on, as `luc.ko` does when it is loaded,
/// and a processor that keeps hitting the breakpoint of a replacement that is long over never goes on. On
/// one thread processors take turns, and never in the middle of a translation.
fn patches_code_safely() -> Result<bool, Error> {
    let version = tools::output(Command::new(tools::find("qemu-system-x86_64")?).arg("--version"))?;
    Ok(version_of(&String::from_utf8_lossy(&version)).is_some_and(|version| version >= (8, 1)))
}

/// Major and minor number in `QEMU emulator version 7.2.22 (Debian ...)`.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("version ")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(
            version_of("QEMU emulator version 7.2.22 (Debian 1:7.2)"),
            Some((7, 2))
        );
        assert_eq!(version_of("QEMU emulator version 10.0.2"), Some((10, 0)));
        assert_eq!(version_of("something else"), None);
    }
}
