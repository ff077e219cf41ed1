//! Runs a script in a virtual machine by hand.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use luc_vm::{Error, GuestKernel, GuestTime, VirtualMachine};

/// Boots a distribution's kernel in QEMU, runs a script in it, and brings the results back.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Boot, run a script, print what it prints and end with its exit status
    Run(Box<Run>),
    /// Fetch a kernel into the cache and print its release and its headers' folder
    Fetch {
        /// Version: 6.1 or 6.12 for its newest release, or a full release such as 6.1.0-56-amd64
        #[arg(long, default_value = "6.1")]
        kernel: String,
    },
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Kernel: 6.1 or 6.12 for its newest release, or a full release such as 6.1.0-56-amd64
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// Script for bash; tools are busybox's and those given by --program
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
    /// Program of this host, by name or path, with its libraries; it is in the guest's PATH
    #[arg(long = "program", value_name = "PROGRAM")]
    programs: Vec<PathBuf>,
    /// File of this host, put at the same name in the guest's /root, or at GUEST
    #[arg(long = "file", value_name = "FILE[:GUEST]")]
    files: Vec<String>,
    /// Module of the kernel's package; the script loads it by modprobe
    #[arg(long = "module", value_name = "NAME")]
    modules: Vec<String>,
    /// Variable in the script's environment
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// File of this host as a disk: /dev/vda, /dev/vdb
    #[arg(long = "disk", value_name = "FILE")]
    disks: Vec<PathBuf>,
    /// Virtual time: an instruction takes 2^SHIFT ns, the same output each time
    #[arg(long, value_name = "SHIFT")]
    virtual_time: Option<u32>,
    /// Processors: 2, or in virtual time 1; several in virtual time need QEMU 8.1 or later (`make setup-vm`)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    processors: Option<u32>,
    /// Memory in MiB
    #[arg(long, default_value_t = 1024)]
    memory: u32,
    /// Seconds after which a guest that has not ended is killed
    #[arg(long, default_value_t = 120)]
    timeout: u64,
    /// Argument for the kernel's command line
    #[arg(long = "append", value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// Folder for the files that the script leaves in $OUT
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// File for the kernel's log
    #[arg(long, value_name = "FILE")]
    kernel_log: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Fetch { kernel } => fetch(&kernel),
    };
    result.unwrap_or_else(|error| {
        eprintln!("luc-vm: {error}");
        ExitCode::from(2)
    })
}

fn fetch(version: &str) -> Result<ExitCode, Error> {
    let kernel = GuestKernel::find(version)?;
    let headers = kernel.headers().map_or_else(
        || format!("no headers: install linux-headers-{}", kernel.release()),
        |folder| folder.display().to_string(),
    );
    println!("{} {headers}", kernel.release());
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &Run) -> Result<ExitCode, Error> {
    let kernel = GuestKernel::find(&arguments.kernel)?;
    let outcome = machine(&kernel, arguments)?.run()?;
    // Who closed the output does not want it.
    let _ = std::io::stdout().write_all(&outcome.output);
    if let Some(folder) = &arguments.out {
        for (name, content) in &outcome.files {
            write(&folder.join(name), content)?;
        }
    }
    if let Some(path) = &arguments.kernel_log {
        write(path, outcome.kernel_log.as_bytes())?;
    }
    for line in outcome.complaints() {
        eprintln!("luc-vm: kernel: {line}");
    }
    Ok(u8::try_from(outcome.status).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn machine<'a>(kernel: &'a GuestKernel, arguments: &Run) -> Result<VirtualMachine<'a>, Error> {
    let script = std::fs::read(&arguments.script)
        .map_err(|source| Error::File { path: arguments.script.clone(), source })?;
    let mode = arguments
        .virtual_time
        .map_or(GuestTime::Function { processors: arguments.processors.unwrap_or(2) }, |shift| {
            GuestTime::VirtualTime { shift, processors: arguments.processors.unwrap_or(1) }
        });
    let mut vm = VirtualMachine::new(kernel)
        .mode(mode)
        .memory_mib(arguments.memory)
        .timeout(Duration::from_secs(arguments.timeout))
        .script(script);
    for program in &arguments.programs {
        vm = vm.program(program);
    }
    for file in &arguments.files {
        let (source, guest) = match file.split_once(':') {
            Some((source, guest)) => (Path::new(source), PathBuf::from(guest)),
            None => (
                Path::new(file),
                Path::new("/root").join(Path::new(file).file_name().unwrap_or_default()),
            ),
        };
        vm = vm.file(guest, source);
    }
    for module in &arguments.modules {
        vm = vm.module(module);
    }
    for variable in &arguments.variables {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        vm = vm.variable(name, value);
    }
    for disk in &arguments.disks {
        vm = vm.disk(disk);
    }
    for argument in &arguments.arguments {
        vm = vm.kernel_argument(argument);
    }
    Ok(vm)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, content));
    written.map_err(|source| Error::File { path: path.to_owned(), source })
}
