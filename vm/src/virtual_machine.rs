//! Description of a virtual machine: its contents and its script.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::guest_kernel::GuestKernel;
use crate::guest_network::CableEnd;
use crate::guest_outcome::GuestOutcome;
use crate::guest_time::GuestTime;
use crate::initramfs::Initramfs;
use crate::qemu::Qemu;
use crate::qemu_command_line::QemuCommandLine;
use crate::running_guest::{GuestChannels, RunningGuest};
use crate::shared_memory::SharedMemory;
use crate::{guest_programs, host_tools, qemu_monitor};

/// Modules in every guest: for the run itself, the file systems under test, and loop devices.
const MODULES: [&str; 6] = ["virtio_pci", "virtio_console", "virtio_blk", "ext4", "xfs", "loop"];
/// Module that ext4 and xfs request by name until Linux 6.14. It is added if the kernel has it.
const CHECKSUM_MODULE: &str = "crc32c_generic";

/// Module that drives a network card.
const CARD_MODULE: &str = "virtio_net";

/// Shell that runs the script. Busybox's own would prefer its own tools to those of the host.
const SHELL: &str = "bash";

/// A virtual machine that has not started yet.
#[derive(Debug)]
pub struct VirtualMachine<'a> {
    kernel: &'a GuestKernel,
    qemu: Option<Qemu>,
    mode: GuestTime,
    memory_mib: u32,
    limit: Duration,
    modules: BTreeSet<String>,
    programs: Vec<PathBuf>,
    files: Vec<(PathBuf, PathBuf)>,
    contents: Vec<(PathBuf, Vec<u8>)>,
    variables: BTreeMap<String, String>,
    disks: Vec<PathBuf>,
    cables: Vec<CableEnd>,
    shared_memory: Option<SharedMemory>,
    is_pausable: bool,
    arguments: Vec<String>,
    script: Vec<u8>,
}

impl<'a> VirtualMachine<'a> {
    /// Describes a machine with two processors, 1 GiB of memory, a timeout of 2 minutes and an empty script.
    pub fn new(kernel: &'a GuestKernel) -> Self {
        Self {
            kernel,
            qemu: None,
            mode: GuestTime::default(),
            memory_mib: 1024,
            limit: Duration::from_secs(120),
            modules: MODULES.iter().map(|name| (*name).to_owned()).collect(),
            programs: Vec::new(),
            files: Vec::new(),
            contents: Vec::new(),
            variables: BTreeMap::new(),
            disks: Vec::new(),
            cables: Vec::new(),
            shared_memory: None,
            is_pausable: false,
            arguments: Vec::new(),
            script: Vec::new(),
        }
    }

    /// Sets how its time passes.
    pub fn mode(mut self, mode: GuestTime) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the emulator. The default is the system's QEMU, or for several processors in virtual time
    /// [`Qemu::for_several`].
    pub fn qemu(mut self, qemu: Qemu) -> Self {
        self.qemu = Some(qemu);
        self
    }

    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// Sets the maximum duration on the host's clock.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Adds a module of the distribution's kernel, with its dependencies. The script loads it by `modprobe`.
    pub fn module(mut self, name: &str) -> Self {
        self.modules.insert(name.to_owned());
        self
    }

    /// Adds a program of the host by path or name, with its shared libraries. It is found before busybox's tools.
    pub fn program(mut self, program: impl AsRef<Path>) -> Self {
        self.programs.push(program.as_ref().to_owned());
        self
    }

    /// Adds the host's file `source` as `guest`.
    pub fn file(mut self, guest: impl AsRef<Path>, source: impl AsRef<Path>) -> Self {
        self.files.push((guest.as_ref().to_owned(), source.as_ref().to_owned()));
        self
    }

    /// Adds a file `guest` with this content.
    pub fn content(mut self, guest: impl AsRef<Path>, content: impl Into<Vec<u8>>) -> Self {
        self.contents.push((guest.as_ref().to_owned(), content.into()));
        self
    }

    /// Sets a variable in the script's environment.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a file of the host as a disk, `/dev/vda` and on. Data written there outlives the guest.
    pub fn disk(mut self, file: impl AsRef<Path>) -> Self {
        self.disks.push(file.as_ref().to_owned());
        self
    }

    /// Adds a network card with this end of a cable: `eth0` and on, once the script has loaded `virtio_net`.
    pub fn cable(mut self, end: CableEnd) -> Self {
        self.cables.push(end);
        self.module(CARD_MODULE)
    }

    /// Adds memory that it shares with the host and other guests.
    pub fn shared_memory(mut self, memory: SharedMemory) -> Self {
        self.shared_memory = Some(memory);
        self
    }

    /// Lets [`RunningGuest::pause`] stop it.
    pub fn pausable(mut self) -> Self {
        self.is_pausable = true;
        self
    }

    /// Adds an argument to the kernel's command line.
    pub fn kernel_argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Sets the script, for bash with busybox's tools. Files that it leaves in `$OUT` come back.
    pub fn script(mut self, script: impl Into<Vec<u8>>) -> Self {
        self.script = script.into();
        self
    }

    /// Boots, runs the script, and returns its results.
    ///
    /// # Errors
    ///
    /// What [`VirtualMachine::start`] and [`RunningGuest::wait`] say.
    pub fn run(&self) -> Result<GuestOutcome, Error> {
        self.start()?.wait()
    }

    /// Boots and returns at once.
    ///
    /// # Errors
    ///
    /// What is missing on this machine, or cannot be read.
    pub fn start(&self) -> Result<RunningGuest, Error> {
        let mut channels = GuestChannels::new()?;
        let system = |source| Error::System { what: "writing the initramfs", source };
        channels.initramfs.file().write_all(&self.initramfs()?).map_err(system)?;
        let qemu = match (&self.qemu, self.mode) {
            (Some(qemu), _) => qemu.clone(),
            (None, GuestTime::VirtualTime { processors, .. }) if processors > 1 => {
                Qemu::for_several()?
            }
            (None, _) => Qemu::system_for(self.kernel.architecture())?,
        };
        let machine = QemuCommandLine {
            qemu: &qemu,
            architecture: self.kernel.architecture(),
            mode: self.mode,
            memory_mib: self.memory_mib,
            image: &self.kernel.image(),
            initramfs: &channels.initramfs.path(),
            console: &channels.console.path(),
            results: &channels.results.path(),
            output: &channels.output.path(),
            turns: &channels.turns.path(),
            disks: &self.disks,
            cables: &self.cables,
            shared_memory: self.shared_memory.as_ref(),
            arguments: &self.arguments,
        };
        let mut command = machine.command()?;
        let mut inherited: Vec<_> = self.cables.iter().map(CableEnd::inherited).collect();
        let mut monitor = None;
        if self.is_pausable {
            let (ours, theirs) = qemu_monitor::pair()?;
            qemu_monitor::attach(&theirs, &mut command);
            inherited.push(theirs);
            monitor = Some(ours);
        }
        RunningGuest::start(command, channels, monitor, inherited, self.limit)
    }

    fn initramfs(&self) -> Result<Vec<u8>, Error> {
        let mut archive = Initramfs::new(self.kernel.root())?;
        self.add_modules(&mut archive)?;
        archive.program(Path::new(SHELL))?;
        for program in &self.programs {
            archive.program(program)?;
        }
        for (guest, source) in &self.files {
            archive.file_of_host(guest, source)?;
            if guest_programs::is_elf(source)? {
                archive.libraries(source)?;
            }
        }
        for (guest, content) in &self.contents {
            archive.content(guest, 0o755, content);
        }
        archive.content(Path::new("/luc/environment"), 0o644, self.environment().as_bytes());
        archive.content(Path::new("/luc/script"), 0o755, &self.script);
        Ok(archive.finish())
    }

    fn add_modules(&self, archive: &mut Initramfs<'_>) -> Result<(), Error> {
        let mut files = BTreeSet::new();
        for name in &self.modules {
            files.extend(self.kernel.modules(name)?);
        }
        // A kernel without it computes checksums by itself.
        files.extend(self.kernel.modules(CHECKSUM_MODULE).unwrap_or_default());
        let folder = self.kernel.folder();
        let lists = folder.join("lib/modules").join(self.kernel.release());
        for list in [
            "modules.dep",
            "modules.alias",
            "modules.symbols",
            "modules.builtin",
            "modules.softdep",
        ] {
            files.insert(lists.join(list));
        }
        for file in files {
            let guest = file.strip_prefix(folder).unwrap_or(&file);
            archive.content(guest, 0o644, &host_tools::read(&file)?);
        }
        Ok(())
    }

    fn environment(&self) -> String {
        let mode = match self.mode {
            GuestTime::Function { .. } => "function",
            GuestTime::VirtualTime { .. } => "virtual",
        };
        let mut text = format!("MODE={mode}\n");
        for (name, value) in &self.variables {
            text += &format!("export {name}='{}'\n", value.replace('\'', r"'\''"));
        }
        text
    }
}
