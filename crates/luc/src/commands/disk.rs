//! `luc disk`: emulated disks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use luc_disk::{
    BlockErrno, ByteRange, DiskInfo, DiskSpec, Error, FaultKind, FaultSpec, FaultStatus, MkfsSpec,
    ModelSpec, MountSpec,
};
use luc_host::interrupt_flag;
use luc_units::{format_duration, format_size, parse_duration_ns, parse_size_bytes};
use serde::Serialize;

use super::{INTERRUPTED, own_path};

/// Make emulated disks: block devices with modelled latency, injected faults and power cuts
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(Box<Create>),
    /// List the disks.
    #[command(after_help = "Example:\n  luc disk list --json")]
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show a disk's requests and time since its creation.
    #[command(visible_alias = "status", after_help = "Example:\n  luc disk stats slow")]
    Stats {
        /// Name of the disk
        name: String,
        #[command(flatten)]
        output: Output,
    },
    Fail(Box<Fail>),
    /// Cut a disk's power: unflushed data is lost, and every request fails until `restore`.
    #[command(after_help = "Examples:\n  \
        luc disk cut slow            # all that was not flushed is gone\n  \
        luc disk cut slow --seed 7   # a subset of it persists, drawn sector by sector")]
    Cut {
        /// Name of the disk
        name: String,
        /// Let a random subset of the unflushed sectors persist, drawn with this seed
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Give a cut disk its power back; unmount it first.
    #[command(
        after_help = "Example:\n  umount /mnt && luc disk restore slow && mount /dev/loop0 /mnt"
    )]
    Restore {
        /// Name of the disk
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Remove disks: unmount, detach, end the daemon.
    #[command(after_help = "Examples:\n  \
        luc disk remove slow\n  \
        luc disk remove --all   # also clears what a crash left, and disks in use")]
    Remove {
        /// Names of the disks
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// Remove every disk, also those in use or half gone
        #[arg(long, conflicts_with = "names")]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    #[command(hide = true)]
    Serve {
        #[arg(long)]
        dir: PathBuf,
    },
}

/// Create a disk; optionally make and mount a file system on it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    luc disk create slow --flush 6ms --write 100us --read 100us\n  \
    luc disk create slow --mkfs ext4 --mount /mnt\n  \
    luc disk create old --model hdd --size 4G --mkfs ext4 --mkfs-options '-O fast_commit'\n  \
    luc disk create raid --model ssd --read-ahead 4M\n\n\
    A model file is TOML, e.g.:\n  \
    model = \"fixed\"\n  \
    read_ns = 100_000\n  \
    write_ns = 20_000\n  \
    flush_ns = 6_000_000\n\n\
    Exit status: 0; 2 if the request or the machine is not right; 130 interrupted. Unless it is 0, nothing is left behind.")]
struct Create {
    /// Name of the disk: letters, digits, '-' and '_'
    name: String,
    /// Latency model: fixed, hdd, ssd, cloud, or a path ending in .toml
    #[arg(long, default_value = "fixed")]
    model: String,
    /// Size, such as 512M or 1G; only touched pages take memory
    #[arg(long, default_value = "1G")]
    size: String,
    /// Keep the disk in huge pages of 2 MiB, out of the page cache
    ///
    /// Pages for its size and for twice its write cache are reserved at once (/proc/sys/vm/nr_hugepages).
    #[arg(long)]
    huge_pages: bool,
    /// Distance that the kernel reads ahead, as /sys/block/.../queue/read_ahead_kb; real disks have 128K
    #[arg(long, value_name = "SIZE", default_value = "128K")]
    read_ahead: String,
    /// Time of a flush, model fixed only [default: 6ms]
    #[arg(long, value_name = "TIME")]
    flush: Option<String>,
    /// Time of a write, model fixed only [default: 100us]
    #[arg(long, value_name = "TIME")]
    write: Option<String>,
    /// Time of a read, model fixed only [default: 100us]
    #[arg(long, value_name = "TIME")]
    read: Option<String>,
    /// Make this file system: ext4, xfs, ...; needs mkfs.FS
    #[arg(long, value_name = "FS")]
    mkfs: Option<String>,
    /// Further options for mkfs
    #[arg(long, value_name = "OPTIONS", requires = "mkfs", allow_hyphen_values = true)]
    mkfs_options: Option<String>,
    /// Mount the file system on this existing directory
    #[arg(long, value_name = "DIR", requires = "mkfs")]
    mount: Option<PathBuf>,
    /// Mount options, as for mount -o
    #[arg(long, value_name = "OPTIONS", requires = "mount")]
    mount_options: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Make a disk's requests fail as real disks do, or show how many have failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    luc disk fail slow --errno ENODATA                # every write from now on: bad sectors\n  \
    luc disk fail slow --errno EIO --after 100 --every 10\n  \
    luc disk fail slow --errno ETIMEDOUT --on read --range 1G-1025M --for 2s\n  \
    luc disk fail slow --errno EIO --on flush\n  \
    luc disk fail slow                                # how many have failed so far\n  \
    luc disk fail slow --clear\n\n\
    The errnos are those that a block device can give: see docs/reference/faults.md. A write that fails changes\n\
    nothing on the disk, a flush that fails makes nothing durable. A request that touches a range\n\
    fails as a whole. --after and --every count requests that match --on and --range. A later fault\n\
    replaces an earlier one.")]
struct Fail {
    /// Name of the disk
    name: String,
    /// Errno of the failed requests: a name or a number
    #[arg(long, value_name = "E")]
    errno: Option<BlockErrno>,
    #[command(flatten)]
    which: FailingRequestArgs,
    /// Make no request fail any more
    #[arg(long, conflicts_with = "errno")]
    clear: bool,
    #[command(flatten)]
    output: Output,
}

/// Selects the requests that fail; also for `luc faults -- COMMAND`.
#[derive(Debug, clap::Args)]
pub(crate) struct FailingRequestArgs {
    /// Kinds of requests that fail: write, read, flush, or several, such as write,read [default: write]
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    on: Vec<FaultKind>,
    /// Serve N matching requests before the first failure
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// Fail every N-th matching request after these
    #[arg(long, value_name = "N")]
    every: Option<u64>,
    /// Fail only requests that touch bytes A to B, without B, such as 4K-8K; may be repeated
    #[arg(long, value_name = "A-B")]
    range: Vec<ByteRange>,
    /// Stop failing requests after TIME, such as 2s
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<String>,
}

impl FailingRequestArgs {
    /// The first option that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            ("--on", !self.on.is_empty()),
            ("--after", self.after.is_some()),
            ("--every", self.every.is_some()),
            ("--range", !self.range.is_empty()),
            ("--for", self.lasting.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    /// These requests fail with this errno.
    pub(crate) fn fail_with(&self, errno: BlockErrno) -> Result<FaultSpec, Error> {
        let all = FaultSpec::writes(errno);
        let lasting = self.lasting.as_deref().map(parse_duration_ns);
        Ok(FaultSpec {
            on: if self.on.is_empty() { all.on.clone() } else { self.on.clone() },
            after: self.after.unwrap_or(all.after),
            every: self.every.unwrap_or(all.every),
            ranges: self.range.clone(),
            for_ns: lasting.transpose()?,
            ..all
        })
    }
}

#[derive(Debug, clap::Args)]
struct Output {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Prints `value` as JSON, or as the text that `text` makes of it.
    fn show<T: Serialize>(&self, value: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
        if self.json {
            luc_cli::print_json(value)?;
        } else {
            println!("{}", text(value));
        }
        Ok(())
    }
}

impl Args {
    /// Whether this process is a disk.
    pub(crate) fn is_daemon(&self) -> bool {
        matches!(self.action, Action::Serve { .. })
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Create(args) => return create(*args),
        Action::List { output } => output.show(&luc_disk::list()?, |disks| table(disks))?,
        Action::Stats { name, output } => output.show(&luc_disk::stats(&name)?, stats)?,
        Action::Fail(args) => fail(&args)?,
        Action::Cut { name, seed, output } => {
            output.show(&luc_disk::cut(&name, seed)?, |report| {
                format!(
                    "disk '{name}' is cut: of its unflushed sectors {} kept, {} stale, {} lost",
                    report.kept_sectors, report.stale_sectors, report.lost_sectors
                )
            })?;
        }
        Action::Restore { name, output } => {
            luc_disk::restore(&name)?;
            output.show(&[&name], |_| format!("disk '{name}' is restored"))?;
        }
        Action::Remove { names, all, output } => {
            output.show(&remove(names, all)?, |names| match names.as_slice() {
                [] => "no disks to remove".to_owned(),
                names => format!("removed {}", names.join(", ")),
            })?;
        }
        Action::Serve { dir } => luc_disk::serve(dir)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn fail(args: &Fail) -> anyhow::Result<()> {
    let name = &args.name;
    if args.errno.is_none()
        && let Some(option) = args.which.given()
    {
        anyhow::bail!(
            "{option} says which requests fail, but not how: add --errno, as in --errno EIO"
        );
    }
    let (status, what): (FaultStatus, _) = match args.errno {
        Some(errno) => {
            let spec = args.which.fail_with(errno)?;
            let status = luc_disk::fail(name, &spec)?;
            return args.output.show(&status, |status| format!("disk '{name}': {}", status.spec));
        }
        None if args.clear => (luc_disk::clear_fault(name)?, "fails no more"),
        None => (luc_disk::fault(name)?, "fails"),
    };
    args.output.show(&status, |status| format!("disk '{name}' {what}: {status}"))
}

fn create(args: Create) -> anyhow::Result<ExitCode> {
    let model = model(&args)?;
    let spec = DiskSpec {
        name: args.name,
        model,
        size_bytes: parse_size_bytes(&args.size)?,
        huge_pages: args.huge_pages,
        read_ahead_bytes: parse_size_bytes(&args.read_ahead)?,
        mkfs: args.mkfs.map(|fs| MkfsSpec { fs, options: args.mkfs_options.unwrap_or_default() }),
        mount: args
            .mount
            .map(|dir| MountSpec { dir, options: args.mount_options.unwrap_or_default() }),
    };
    let binary = own_path()?;
    let guard = interrupt_flag::SignalGuard::install()?;
    let info = match luc_disk::create(&spec, &binary) {
        Err(error @ Error::Interrupted) => {
            eprintln!("luc: {error}");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        created => created?,
    };
    // The disk stands. A signal between here and the process' end must not make its exit status say otherwise.
    std::mem::forget(guard);
    args.output.show(&info, |info| {
        let mounted = info.mount.as_ref().map(|dir| format!(", mounted on {}", dir.display()));
        format!(
            "disk '{}' is {}, {}, {}{}",
            info.name,
            info.device.display(),
            format_size(info.size_bytes),
            describe(&info.model),
            mounted.unwrap_or_default()
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

fn model(args: &Create) -> anyhow::Result<ModelSpec> {
    let mut model = match Path::new(&args.model) {
        path if path.extension().is_some_and(|extension| extension == "toml") => {
            ModelSpec::from_toml_file(path)?
        }
        _ => ModelSpec::from_name(&args.model)?,
    };
    for (option, text) in [("read", &args.read), ("write", &args.write), ("flush", &args.flush)] {
        let Some(text) = text else { continue };
        let ns = parse_duration_ns(text)?;
        let ModelSpec::Fixed { read_ns, write_ns, flush_ns } = &mut model else {
            anyhow::bail!(
                "--{option} does not go with model '{}', whose times follow from its parameters: \
                 leave it out, or use --model fixed",
                model.name()
            );
        };
        *match option {
            "read" => read_ns,
            "write" => write_ns,
            _ => flush_ns,
        } = ns;
    }
    Ok(model)
}

fn remove(names: Vec<String>, all: bool) -> Result<Vec<String>, Error> {
    if all {
        return luc_disk::remove_all();
    }
    names.iter().try_for_each(|name| luc_disk::remove(name))?;
    Ok(names)
}

fn table(disks: &[DiskInfo]) -> String {
    if disks.is_empty() {
        return "no disks".to_owned();
    }
    let mut text = format!("{:<16} {:<8} {:<12} {:>6}  ON", "NAME", "STATE", "DEVICE", "SIZE");
    for disk in disks {
        let mounted = disk.mount.as_ref().map_or("-".to_owned(), |dir| dir.display().to_string());
        text += &format!(
            "\n{:<16} {:<8} {:<12} {:>6}  {mounted}  {}{}",
            disk.name,
            disk.state,
            disk.device.display().to_string(),
            format_size(disk.size_bytes),
            describe(&disk.model),
            disk.fault.as_ref().map_or(String::new(), |fault| format!("; {fault}"))
        );
    }
    text
}

fn describe(model: &ModelSpec) -> String {
    match model {
        ModelSpec::Fixed { read_ns, write_ns, flush_ns } => format!(
            "fixed (read {}, write {}, flush {})",
            format_duration(*read_ns),
            format_duration(*write_ns),
            format_duration(*flush_ns)
        ),
        other => other.name().to_owned(),
    }
}

fn stats(stats: &luc_disk::DiskStats) -> String {
    let mean = |sum_ns: u64, count: u64| format_duration(sum_ns.checked_div(count).unwrap_or(0));
    format!(
        "reads    {:>10}  {:>12} bytes  mean {}\n\
         writes   {:>10}  {:>12} bytes  mean {}\n\
         flushes  {:>10}  {:>12}        mean {}\n\
         discards {:>10}\n\
         refused  {:>10}\n\
         failed   {:>10}\n\
         unflushed {:>22} bytes",
        stats.reads,
        stats.read_bytes,
        mean(stats.read_ns, stats.reads),
        stats.writes,
        stats.written_bytes,
        mean(stats.write_ns, stats.writes),
        stats.flushes,
        "",
        mean(stats.flush_ns, stats.flushes),
        stats.discards,
        stats.refused,
        stats.failed,
        stats.unflushed_bytes
    )
}
