//! The program under trial: it writes, synchronizes and reports the results, while other threads synchronize as well.
//!
//! `luc faults` starts it, with or without the gate, and talks to it in lines of JSON.

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use libc::{c_int, c_void, off_t};

use super::fault_trial::{
    DescriptorBeforeCall, FaultTrial, FaultTrialOutcome, FaultyBlock, TrialCall, TrialCallResult,
    TrialClientOrder, TrialClientReply, TrialFileState,
};
use super::fiemap;

pub(super) const BLOCK_BYTES: usize = 4096;
/// Blocks of a file. The first, one in the middle and the last are written, so that each is a request of its own.
const BLOCKS: usize = 16;
const FILE_BYTES: usize = BLOCKS * BLOCK_BYTES;
const MAX_CONCURRENT_TRIALS: usize = 8;
/// A file of those beside it grows to this.
const MAX_BESIDE_BYTES: u64 = 256 << 10;

#[derive(Debug, Clone)]
pub struct FaultClient {
    /// Directory on the disk under trial.
    pub directory: PathBuf,
    /// Number of threads that append to files of their own and synchronize all the time. They give the gate calls to
    /// bring together.
    pub beside: usize,
}

/// A file under trial.
struct Victim {
    trial: FaultTrial,
    path: PathBuf,
    /// Open and written, not yet synchronized.
    begun: Mutex<Option<Begun>>,
}

/// A file that waits for its call.
struct Begun {
    file: OwnedFd,
    mapping: Option<Mapping>,
}

/// Carries out orders until its standard input ends.
///
/// # Errors
/// Its standard streams, or the first files cannot be made.
pub fn run(client: &FaultClient) -> io::Result<()> {
    let is_over = AtomicBool::new(false);
    let files = (0..client.beside)
        .map(|number| fs::File::create(client.directory.join(format!("beside-{number}"))))
        .collect::<io::Result<Vec<_>>>()?;
    thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| synchronize_always(file, &is_over));
        }
        let outcome = obey(client);
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

fn obey(client: &FaultClient) -> io::Result<()> {
    let mut victims = Vec::new();
    for line in io::stdin().lock().lines() {
        let reply = match serde_json::from_str(&line?)? {
            TrialClientOrder::Prepare { trials } => {
                prepare(&client.directory, trials, &mut victims)
                    .map(|ranges| TrialClientReply::Prepared { ranges })
            }
            TrialClientOrder::Go => in_turn(&victims, |victim| victim.try_call())
                .map(|outcomes| TrialClientReply::Done { outcomes }),
        };
        let reply =
            reply.unwrap_or_else(|reason| TrialClientReply::Failed { reason: reason.to_string() });
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        io::stdout().lock().write_all(&line)?;
    }
    Ok(())
}

/// Appends and synchronizes until the end, so that the gate has calls to hold. Its results do not matter.
fn synchronize_always(mut file: &fs::File, is_over: &AtomicBool) {
    let mut written = 0;
    while !is_over.load(Ordering::Relaxed) {
        let appended = file.write(&[b'b'; 1024]);
        let synchronized = file.sync_all();
        written += 1024;
        if written > MAX_BESIDE_BYTES {
            written = 0;
            // The next write goes on behind a hole.
            let _ = file.set_len(0);
        }
        if appended.is_err() || synchronized.is_err() {
            // The file system may have turned read-only: no busy loop.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Replaces the files by new ones for `trials`, and writes to them.
fn prepare(
    directory: &Path,
    trials: Vec<FaultTrial>,
    victims: &mut Vec<Victim>,
) -> io::Result<Vec<luc_disk::ByteRange>> {
    for victim in victims.drain(..) {
        fs::remove_file(&victim.path)?;
    }
    let victim = |(number, trial)| Victim {
        trial,
        path: directory.join(format!("trial-{number}")),
        begun: Mutex::new(None),
    };
    victims.extend(trials.into_iter().enumerate().map(victim));
    let ranges = in_turn(victims, Victim::make)?;
    in_turn(victims, Victim::begin)?;
    Ok(ranges)
}

/// Lets threads process the victims one after the other. Returns the results in the victims' order.
fn in_turn<T: Send>(
    victims: &[Victim],
    act: impl Fn(&Victim) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(victims.len()));
    thread::scope(|scope| {
        for _ in 0..MAX_CONCURRENT_TRIALS.min(victims.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(victim) = victims.get(number) else {
                        return;
                    };
                    let result = act(victim);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

impl Victim {
    /// Makes the file; the bytes of the disk that are to fail.
    fn make(&self) -> io::Result<luc_disk::ByteRange> {
        let file = fs::File::create(&self.path)?;
        match self.trial.file {
            TrialFileState::Overwritten => (&file).write_all(&[b'1'; FILE_BYTES])?,
            TrialFileState::Preallocated => {
                // SAFETY: plain integers on a descriptor that is open.
                let made = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, FILE_BYTES as off_t) };
                check(made)?;
            }
        }
        // Lets the gate see the file's blocks: a later write is then in place.
        file.sync_data()?;
        fiemap::of_block(&file, self.offset(), BLOCK_BYTES as u64)
    }

    /// Returns the offset of the block in the file, in bytes.
    fn offset(&self) -> u64 {
        let block = match self.trial.block {
            FaultyBlock::First => 0,
            FaultyBlock::Middle => BLOCKS / 2,
            FaultyBlock::Last => BLOCKS - 1,
        };
        (block * BLOCK_BYTES) as u64
    }

    /// Opens the file and does everything before the call. Nothing fails yet.
    fn begin(&self) -> io::Result<()> {
        let how = match self.trial.call {
            TrialCall::Fsync | TrialCall::Fdatasync | TrialCall::Msync => 0,
            TrialCall::OSync => libc::O_SYNC,
            TrialCall::ODsync => libc::O_DSYNC,
        };
        let is_written_by_the_call = how != 0;
        let mut file =
            self.open(if self.trial.before == DescriptorBeforeCall::Direct { how } else { 0 })?;
        let mut mapping = self.mapping(&file)?;
        if !is_written_by_the_call || self.trial.before == DescriptorBeforeCall::Reopened {
            self.write(&file, mapping.as_mut())?;
        }
        if self.trial.before == DescriptorBeforeCall::Reopened {
            drop(mapping);
            drop(file);
            file = self.open(how)?;
            mapping = self.mapping(&file)?;
        }
        *self.lock() = Some(Begun { file, mapping });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_call(&self) -> io::Result<FaultTrialOutcome> {
        let begun = self.lock().take();
        let Some(Begun { file, mapping }) = begun else {
            return Err(io::Error::other("the trial was not prepared"));
        };
        let call = || self.call(&file, mapping.as_ref());
        let (first, second) = (call(), call());
        drop(mapping);
        // SAFETY: the descriptor is this thread's own, and given up here.
        let close = answer(i64::from(unsafe { libc::close(file.into_raw_fd()) }));
        Ok(FaultTrialOutcome { first, second, close })
    }

    fn open(&self, flags: c_int) -> io::Result<OwnedFd> {
        let path = CString::new(self.path.as_os_str().as_bytes())?;
        // SAFETY: `path` is a string that ends with a zero; the new descriptor is owned by nobody else.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | flags);
            check(file)?;
            Ok(OwnedFd::from_raw_fd(file))
        }
    }

    fn mapping(&self, file: &OwnedFd) -> io::Result<Option<Mapping>> {
        (self.trial.call == TrialCall::Msync).then(|| Mapping::new(file)).transpose()
    }

    /// Writes three blocks, apart from each other: only one of these requests is to fail.
    fn write(&self, file: &OwnedFd, mapping: Option<&mut Mapping>) -> io::Result<()> {
        let blocks = [0, BLOCKS / 2, BLOCKS - 1].map(|block| block * BLOCK_BYTES);
        if let Some(mapping) = mapping {
            for at in blocks {
                mapping.bytes()[at..at + BLOCK_BYTES].fill(b'2');
            }
            return Ok(());
        }
        for at in blocks {
            let written = pwrite(file, at as u64);
            if written.is_failure() {
                return Err(io::Error::from_raw_os_error(written.errno));
            }
        }
        Ok(())
    }

    /// Makes the call under trial.
    fn call(&self, file: &OwnedFd, mapping: Option<&Mapping>) -> TrialCallResult {
        let fd = file.as_raw_fd();
        match self.trial.call {
            // SAFETY: a descriptor that is open. The C library's function, which the gate takes the place of.
            TrialCall::Fsync => answer(i64::from(unsafe { libc::fsync(fd) })),
            // SAFETY: as above.
            TrialCall::Fdatasync => answer(i64::from(unsafe { libc::fdatasync(fd) })),
            TrialCall::Msync => {
                mapping.map_or(TrialCallResult { value: 0, errno: 0 }, Mapping::synchronize)
            }
            TrialCall::OSync | TrialCall::ODsync => pwrite(file, self.offset()),
        }
    }
}

/// A file's shared mapping.
struct Mapping(*mut c_void);

// SAFETY: a mapping belongs to the process and not to a thread, and only its owner uses it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(file: &OwnedFd) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that is this long, at a place that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                FILE_BYTES,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(start)) }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is this long, writable, and nobody else in this process has it.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), FILE_BYTES) }
    }

    fn synchronize(&self) -> TrialCallResult {
        // SAFETY: the mapping is this long.
        answer(i64::from(unsafe { libc::msync(self.0, FILE_BYTES, libc::MS_SYNC) }))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this long, and used no more.
        unsafe { libc::munmap(self.0, FILE_BYTES) };
    }
}

fn pwrite(file: &OwnedFd, offset: u64) -> TrialCallResult {
    let block = [b'2'; BLOCK_BYTES];
    // SAFETY: `block` is that long and outlives the call.
    let written = unsafe {
        libc::pwrite(file.as_raw_fd(), block.as_ptr().cast(), BLOCK_BYTES, offset as off_t)
    };
    answer(written as i64)
}

/// A call's return value, with errno if it failed. Directly after the call.
fn answer(value: i64) -> TrialCallResult {
    let errno = if value < 0 { io::Error::last_os_error().raw_os_error().unwrap_or(0) } else { 0 };
    TrialCallResult { value, errno }
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
