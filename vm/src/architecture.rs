//! Differences between guests of different processor architectures.

/// Folders of libraries in Debian's packages for 64-bit Arm.
pub(crate) const ARM64_LIBRARIES: [&str; 2] =
    ["lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"];

/// The architecture of a kernel, and of the programs that run on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// Name of the emulator's program.
    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// Name of the machine for the emulator.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Self::X86_64 => "q35",
            Self::Aarch64 => "virt",
        }
    }

    /// Name of the processor for the emulator in real time.
    pub(crate) fn processor(self) -> &'static str {
        match self {
            Self::X86_64 => "max",
            // A signature of pointers as the architecture has it takes most of the emulation's time.
            Self::Aarch64 => "max,pauth-impdef=on",
        }
    }

    /// Name of the processor for the emulator in virtual time, where nothing may be random.
    pub(crate) fn repeatable_processor(self) -> &'static str {
        match self {
            // A repeated string instruction counts once for each byte without erms and fsrm off: then the kernel
            // copies by words.
            Self::X86_64 => "max,-rdrand,-rdseed,-erms,-fsrm",
            Self::Aarch64 => "cortex-a72",
        }
    }

    /// Kernel arguments for the console and for features of this architecture alone.
    pub(crate) fn kernel_arguments(self) -> &'static str {
        match self {
            Self::X86_64 => "console=ttyS0 nokaslr mitigations=off tsc=reliable no_timer_check",
            Self::Aarch64 => "console=ttyAMA0 nokaslr mitigations=off",
        }
    }
}
