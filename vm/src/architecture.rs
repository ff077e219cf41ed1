//! What differs between guests by the processors that they have.

/// Where Debian's packages for 64-bit Arm have libraries.
pub(crate) const ARM64_LIBRARIES: [&str; 2] =
    ["lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"];

/// The architecture of a kernel, and of the programs that run on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Architecture {
    /// The emulator's program.
    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// The emulator's name of the machine.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Self::X86_64 => "q35",
            Self::Aarch64 => "virt",
        }
    }

    /// The emulator's name of the processor in real time.
    pub(crate) fn processor(self) -> &'static str {
        match self {
            Self::X86_64 => "max",
            // A signature of pointers as the architecture has it takes most of the emulation's time.
            Self::Aarch64 => "max,pauth-impdef=on",
        }
    }

    /// The same in virtual time, where nothing may be random.
    pub(crate) fn repeatable_processor(self) -> &'static str {
        match self {
            // A repeated string instruction counts once for each byte without erms and fsrm off: then the kernel
            // copies by words.
            Self::X86_64 => "max,-rdrand,-rdseed,-erms,-fsrm",
            Self::Aarch64 => "cortex-a72",
        }
    }

    /// What the kernel is told of the console and of what only this architecture has.
    pub(crate) fn kernel_arguments(self) -> &'static str {
        match self {
            Self::X86_64 => "console=ttyS0 nokaslr mitigations=off tsc=reliable no_timer_check",
            Self::Aarch64 => "console=ttyAMA0 nokaslr mitigations=off",
        }
    }
}
