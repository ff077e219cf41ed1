//! Files of the probe: not cached, and on request far apart on their disk.
//!
//! A file system usually puts files close together, and an arm then hardly moves between them. To spread files over
//! the free space, this takes nearly all of it for a moment, in pieces. It asks the file system for the place of each
//! piece (`FS_IOC_FIEMAP`). It makes the files of pieces at equal distances, and frees the others.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Advice, FallocateFlags, access, fadvise, fallocate, fstatvfs};
use serde::Serialize;

use crate::error::BenchError;
use crate::scratch_directory::ScratchDirectory;

/// First bytes of each file made here. Files without them are never overwritten.
pub const MARK: &[u8; 18] = b"luc bench ranking\n";
const CHUNK_BYTES: u64 = 1 << 20;
/// Most pieces into which the free space is cut.
const MAX_PIECES: u64 = 256;
/// Divisor of the free space that gives the part left to others and to the file system itself.
const FREE_SPACE_DIVISOR: u64 = 20;
/// Most extents of a file that are looked at.
const MAX_EXTENTS: usize = 64;

/// Request to create files for the probe.
#[derive(Debug, Clone)]
pub struct ProbeFileCreation {
    /// Their paths: none exists yet.
    pub files: Vec<PathBuf>,
    pub size_bytes: u64,
    /// Whether they are to be spread over the free space, in their order.
    pub spread: bool,
}

/// Place of a file on its disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePlacement {
    pub file: PathBuf,
    pub size_bytes: u64,
    /// Offset of its begin on the device; absent if the file system does not tell.
    pub device_offset_bytes: Option<u64>,
    /// Number of pieces on the device, up to 64.
    pub extents: Option<usize>,
}

/// Makes the files, writes them back, and drops them from the page cache.
///
/// # Errors
/// [`BenchError`]: a file is there already, or cannot be made. Then none of them stays.
pub fn create(plan: &ProbeFileCreation) -> Result<Vec<FilePlacement>, BenchError> {
    check(plan)?;
    let mut made = Made(Vec::new());
    if plan.spread {
        spread(plan, &mut made)?;
    } else {
        for path in &plan.files {
            let failed = |reason| BenchError::operation(path, "making it", reason);
            let options = OpenOptions::new().read(true).write(true).create_new(true).open(path);
            made.add(path.clone(), options.map_err(failed)?);
        }
    }
    let mut places = Vec::new();
    for (path, file) in &made.0 {
        let failed = |reason| BenchError::operation(path, "writing it", reason);
        write(file, plan.size_bytes).map_err(failed)?;
        forget(file).map_err(failed)?;
        let extents = extents(file).ok();
        places.push(FilePlacement {
            file: path.clone(),
            size_bytes: plan.size_bytes,
            device_offset_bytes: extents.as_ref().and_then(|all| Some(all.first()?.physical)),
            extents: extents.map(|all| pieces(&all)),
        });
    }
    made.0.clear();
    Ok(places)
}

fn check(plan: &ProbeFileCreation) -> Result<(), BenchError> {
    if plan.size_bytes < CHUNK_BYTES {
        return Err(BenchError::Input {
            option: format!("--create {}", plan.size_bytes),
            reason: "less than 1M",
            advice: "write a size such as 32M: a disk's cache holds what is smaller",
        });
    }
    for (number, path) in plan.files.iter().enumerate() {
        if path.symlink_metadata().is_ok() || plan.files[..number].contains(path) {
            return Err(BenchError::Input {
                option: path.display().to_string(),
                reason: "it is there already, or named twice",
                advice: "remove it, or give another name",
            });
        }
    }
    Ok(())
}

/// Files that go away with this value.
struct Made(Vec<(PathBuf, File)>);

impl Made {
    fn add(&mut self, path: PathBuf, file: File) {
        self.0.push((path, file));
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (path, _) in &self.0 {
            // An error is on its way to the user already; this one would hide it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes the files of pieces of the free space at equal distances.
fn spread(plan: &ProbeFileCreation, made: &mut Made) -> Result<(), BenchError> {
    let folder = common_folder(&plan.files)?;
    let scratch = ScratchDirectory::create(&folder)?;
    let failed = |what: &'static str| {
        let folder = folder.clone();
        move |reason: io::Error| BenchError::operation(&folder, what, reason)
    };
    let root = File::open(scratch.path()).map_err(failed("opening it"))?;
    let about = fstatvfs(&root).map_err(|errno| failed("looking at it")(errno.into()))?;
    let free_bytes = about.f_bavail * about.f_frsize;
    let usable_bytes = free_bytes - free_bytes / FREE_SPACE_DIVISOR;
    let wanted = plan.files.len() as u64;
    if usable_bytes / plan.size_bytes < wanted {
        let what = format!("making {wanted} files of {} bytes", plan.size_bytes);
        return Err(BenchError::operation(&folder, &what, io::ErrorKind::StorageFull.into()));
    }
    let count = (usable_bytes / plan.size_bytes).clamp(wanted, MAX_PIECES.max(wanted));
    let piece_bytes = usable_bytes / count / 4096 * 4096;
    let mut all = Vec::new();
    for number in 0..count {
        let path = scratch.path().join(number.to_string());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(failed("making a file"))?;
        let bytes = piece_bytes.max(plan.size_bytes);
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => {}
            // The file system's own blocks took more than estimated.
            Err(rustix::io::Errno::NOSPC) if all.len() as u64 >= wanted => break,
            Err(errno) => return Err(no_place(&folder, errno.into())),
        }
        let extents = extents(&file).map_err(|reason| no_place(&folder, reason))?;
        let Some(first) = extents.first() else {
            return Err(no_place(&folder, io::ErrorKind::Unsupported.into()));
        };
        all.push((pieces(&extents) > 1, first.physical, path, file));
    }
    // Files in one piece, if there are enough of them.
    let whole = all.iter().filter(|(is_cut, ..)| !is_cut).count() as u64;
    if whole >= wanted {
        all.retain(|(is_cut, ..)| !is_cut);
    }
    all.sort_by_key(|(_, physical, ..)| *physical);
    let chosen = at_equal_distances(all.len(), plan.files.len());
    for (target, index) in plan.files.iter().zip(chosen) {
        let (_, _, path, file) = &all[index];
        let renamed = fs::rename(path, target).and_then(|()| {
            made.add(target.clone(), file.try_clone()?);
            file.set_len(plan.size_bytes)
        });
        renamed.map_err(|reason| BenchError::operation(target, "making it", reason))?;
    }
    drop(all);
    scratch.remove()
}

/// Returns the folder of the files, which are all on one file system.
fn common_folder(files: &[PathBuf]) -> Result<PathBuf, BenchError> {
    let mut found: Option<(PathBuf, u64)> = None;
    for file in files {
        let folder = match file.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let about = fs::metadata(folder).map_err(|error| BenchError::directory(folder, error))?;
        match &found {
            None => found = Some((folder.to_owned(), about.dev())),
            Some((_, dev)) if *dev == about.dev() => {}
            Some(_) => {
                return Err(BenchError::Input {
                    option: file.display().to_string(),
                    reason: "with --spread all files are on one file system",
                    advice: "make the files of each file system with a command of its own",
                });
            }
        }
    }
    found.map(|(folder, _)| folder).ok_or(BenchError::Interrupted)
}

fn no_place(folder: &Path, reason: io::Error) -> BenchError {
    BenchError::Operation {
        path: folder.to_owned(),
        what: "spreading files over the disk".to_owned(),
        reason,
        advice: "use a file system that allocates in advance and says where (ext4, XFS), or leave --spread out",
    }
}

/// Returns `wanted` of `count` numbers, with equal distances, the first and the last among them.
fn at_equal_distances(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let last = count.saturating_sub(1);
    let steps = wanted.saturating_sub(1).max(1);
    (0..wanted).map(move |number| number * last / steps)
}

fn write(mut file: &File, size_bytes: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES as usize];
    let mut written = 0;
    while written < size_bytes {
        let bytes = (size_bytes - written).min(CHUNK_BYTES) as usize;
        fill(&mut chunk[..bytes], written);
        file.write_all(&chunk[..bytes])?;
        written += bytes as u64;
    }
    file.sync_all()
}

/// Fills `block` with the contents of a file made here, from `position` on.
pub(super) fn fill(block: &mut [u8], position: u64) {
    block.fill(b'.');
    let Ok(position) = usize::try_from(position) else {
        return;
    };
    if let Some(rest) = MARK.get(position..) {
        let bytes = rest.len().min(block.len());
        block[..bytes].copy_from_slice(&rest[..bytes]);
    }
}

/// Drops a file's clean pages from the page cache.
pub(super) fn forget(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Counts the bytes of a file in the page cache, by mincore(2). The kernel tells the truth only to those who may write
/// to the file, and "all" to others.
pub(super) fn cached_bytes(path: &Path, file: &File, size_bytes: u64) -> Option<u64> {
    access(path, Access::WRITE_OK).ok()?;
    let length = usize::try_from(size_bytes).ok().filter(|length| *length > 0)?;
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    let mut pages = vec![0_u8; length.div_ceil(page_bytes)];
    // SAFETY: a new mapping at an address of the kernel's choice; nothing reads it, and it is unmapped below.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping has `length` bytes, and `pages` a byte for each of its pages.
    let known = unsafe { libc::mincore(address, length, pages.as_mut_ptr()) } == 0;
    // SAFETY: this is the mapping made above, and nothing refers to it.
    unsafe { libc::munmap(address, length) };
    let cached = pages.iter().filter(|page| *page & 1 == 1).count() * page_bytes;
    known.then(|| (cached as u64).min(size_bytes))
}

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for extents.
#[repr(C)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; MAX_EXTENTS],
}

// linux/fs.h: _IOWR('f', 11, struct fiemap)
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// Keeps the layout honest.
const _: () = assert!(size_of::<ExtentMap>() == 32 + MAX_EXTENTS * 56);

/// Reads the first extents of a file.
fn extents(file: &File) -> io::Result<Vec<Extent>> {
    let mut map = ExtentMap {
        start: 0,
        length: u64::MAX,
        flags: 0,
        mapped: 0,
        room: MAX_EXTENTS as u32,
        reserved: 0,
        extents: [Extent::default(); MAX_EXTENTS],
    };
    // SAFETY: FS_IOC_FIEMAP fills at most `room` extents behind a `struct fiemap`, which `map` has; the file is open.
    if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(map.extents[..(map.mapped as usize).min(MAX_EXTENTS)].to_vec())
}

/// Counts the contiguous pieces of the extents.
fn pieces(extents: &[Extent]) -> usize {
    let breaks =
        extents.windows(2).filter(|pair| pair[0].physical + pair[0].length != pair[1].physical);
    breaks.count() + usize::from(!extents.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_equal_and_reach_from_end_to_end() {
        let of = |count, wanted| at_equal_distances(count, wanted).collect::<Vec<_>>();
        assert_eq!(of(64, 4), [0, 21, 42, 63]);
        assert_eq!(of(4, 4), [0, 1, 2, 3]);
        assert_eq!(of(9, 1), [0]);
    }

    #[test]
    fn extents_that_continue_one_another_are_one_piece() {
        let extent = |physical, length| Extent { physical, length, ..Extent::default() };
        assert_eq!(pieces(&[]), 0);
        assert_eq!(pieces(&[extent(10, 5), extent(15, 5)]), 1);
        assert_eq!(pieces(&[extent(10, 5), extent(16, 5), extent(21, 1)]), 2);
    }

    #[test]
    fn the_mark_is_at_the_beginning_whatever_the_blocks() {
        for block_bytes in [1, 5, 18, 64] {
            let mut text = Vec::new();
            while text.len() < 64 {
                let mut block = vec![0; block_bytes];
                fill(&mut block, text.len() as u64);
                text.extend(block);
            }
            assert!(text.starts_with(MARK), "{block_bytes}");
            assert!(text[MARK.len()..].iter().all(|byte| *byte == b'.'));
        }
    }
}
