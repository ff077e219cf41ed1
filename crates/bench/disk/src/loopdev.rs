//! Loop devices: attach, detach, and find by backing file (loop(4), linux/loop.h).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use luc_units::OnPath as _;

use crate::disk_spec::READ_AHEAD_BYTES;
use crate::{DiskSpec, Error};

const CONTROL: &str = "/dev/loop-control";

// linux/loop.h
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;
// linux/fs.h: _IO(0x12, 97)
const BLKFLSBUF: libc::c_ulong = 0x1261;

#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// Checks that loop devices can be opened.
///
/// # Errors
/// [`Error::NoLoop`].
pub(crate) fn check() -> Result<(), Error> {
    open(Path::new(CONTROL)).map(drop).map_err(Error::NoLoop)
}

/// Attaches a free loop device with direct I/O and 512-byte blocks to a file.
///
/// # Errors
/// [`Error::NoLoop`] when none is free, [`Error::Io`] when the file cannot be used.
pub(crate) fn attach(file: &Path) -> Result<PathBuf, Error> {
    let backing = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(file)
        .map_err(Error::io("open", file))?;
    let control = open(Path::new(CONTROL)).map_err(Error::NoLoop)?;
    loop {
        // SAFETY: LOOP_CTL_GET_FREE takes no argument; `control` is open for the call.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(Error::NoLoop(io::Error::last_os_error()));
        }
        let device = PathBuf::from(format!("/dev/loop{number}"));
        let node = open(&device).map_err(Error::NoLoop)?;
        match configure(&node, &backing, file) {
            Ok(()) => return Ok(device),
            // Somebody else was quicker: take the next.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(Error::NoLoop(error)),
        }
    }
}

fn configure(node: &File, backing: &File, path: &Path) -> io::Result<()> {
    let mut file_name = [0u8; 64];
    for (to, from) in file_name[..63].iter_mut().zip(path.as_os_str().as_bytes()) {
        *to = *from;
    }
    let config = LoopConfig {
        fd: backing.as_raw_fd() as u32,
        block_size: 512,
        info: LoopInfo64 {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_DIRECT_IO,
            file_name,
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, which `config` mirrors, and both
    // descriptors are open for the call.
    let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the device's queue to what it emulates. Kernels without a setting keep their own.
pub(crate) fn tune(device: &Path, spec: &DiskSpec, max_request_bytes: u32) {
    let Some(name) = device.file_name() else {
        return;
    };
    let queue = Path::new("/sys/block").join(name).join("queue");
    let set = |setting: &str, value: &str| {
        let _ = std::fs::write(queue.join(setting), value);
    };
    // Larger requests would reach the disk in pieces, and each piece costs.
    set("max_sectors_kb", &(max_request_bytes / 1024).to_string());
    set("rotational", if spec.model.is_rotational() { "1" } else { "0" });
    // An earlier user of the device may have turned flushes off, and that sticks.
    set("write_cache", "write back");
    // Kernels that derive it from the largest request give a loop device 2 MiB and more, real disks 128 KiB; each of
    // the settings above makes them derive it again.
    set("read_ahead_kb", &(spec.read_ahead_bytes >> 10).to_string());
}

/// Reverts settings of [`tune`] that the device would keep for its next user.
pub(crate) fn untune(device: &Path) {
    if let Some(name) = device.file_name() {
        let queue = Path::new("/sys/block").join(name).join("queue");
        // 0 is the kernel's default again; kernels that refuse it keep a harmless limit.
        let _ = std::fs::write(queue.join("max_sectors_kb"), "0");
        // A kernel that derives it does so again for the next user.
        let read_ahead_kb = (READ_AHEAD_BYTES >> 10).to_string();
        let _ = std::fs::write(queue.join("read_ahead_kb"), read_ahead_kb);
    }
}

/// Returns the loop devices whose backing file is `file`, also when that is deleted or unreachable.
pub(crate) fn attached_to(file: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let mut devices: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| backing_file(&entry.path()).is_some_and(|backing| backing == file))
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .collect();
    devices.sort();
    devices
}

fn backing_file(sys: &Path) -> Option<PathBuf> {
    let mut text = std::fs::read(sys.join("loop/backing_file")).ok()?;
    while text.last() == Some(&b'\n') {
        text.pop();
    }
    if let Some(stripped) = text.strip_suffix(b" (deleted)") {
        text.truncate(stripped.len());
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(text)))
}

/// Detaches a device from `file`. Whether it is detached when this returns: a device that somebody has open goes
/// when that one closes it.
///
/// # Errors
/// [`Error::Io`] when the device cannot be opened or refuses.
pub(crate) fn detach(device: &Path, file: &Path, timeout: Duration) -> Result<bool, Error> {
    let deadline = Instant::now() + timeout;
    loop {
        let node = open(device).map_err(Error::io("open", device))?;
        // SAFETY: LOOP_CLR_FD takes no argument; `node` is open for the call.
        if unsafe { libc::ioctl(node.as_raw_fd(), LOOP_CLR_FD) } < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENXIO) => return Ok(true),
                Some(libc::EBUSY) => {}
                _ => return Err(Error::io("detach", device)(error)),
            }
        }
        drop(node);
        if !attached_to(file).iter().any(|other| other == device) {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Drops the kernel's cached blocks of a device, written or not.
///
/// # Errors
/// [`Error::Io`] when the device cannot be opened.
pub(crate) fn drop_cache(device: &Path) -> Result<(), Error> {
    let node = open(device).map_err(Error::io("open", device))?;
    // SAFETY: BLKFLSBUF takes no argument; `node` is open for the call.
    unsafe { libc::ioctl(node.as_raw_fd(), BLKFLSBUF, 0) };
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Keeps the ABI honest: sizes from linux/loop.h on 64-bit Linux.
const _: () = assert!(size_of::<LoopInfo64>() == 232 && size_of::<LoopConfig>() == 304);
