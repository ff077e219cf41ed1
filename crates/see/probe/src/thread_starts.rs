//! Functions of threads, and programs of processes.
//!
//! glibc keeps the function of a thread (`start_routine`) in the thread's structure, at the thread pointer. It exports
//! the offset as a constant for debuggers (`_thread_db_pthread_start_routine`: bits, count, offset). So any version is
//! understood, also in a container.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use luc_events::tables::{ProcessProgram, ThreadStart};
use luc_events::{Pid, Tgid, TraceEvent};

use crate::elf_symbols;
use crate::process_program;
use crate::ring_records::{self, task_event};

/// glibc's constant with the offset of a thread's function.
const ROUTINE_CONSTANT: &str = "_thread_db_pthread_start_routine";
/// glibc's constant with the size of the thread's structure, bytes: here the thread pointer is behind that structure.
#[cfg(target_arch = "aarch64")]
const SIZE_CONSTANT: &str = "_thread_db_sizeof_pthread";

/// Known processes and libraries.
#[derive(Debug, Default)]
pub(crate) struct ThreadStarts {
    processes: HashMap<u32, Process>,
    libraries: Libraries,
}

/// Offsets of a thread's function in C libraries, by device and inode.
type Libraries = HashMap<(String, u64), Option<u64>>;

/// A process, until it begins another program.
#[derive(Debug, Default)]
struct Process {
    mappings: Vec<Mapping>,
    /// Offset of a thread's function from the thread pointer, once its C library was searched.
    routine_offset: Option<Option<u64>>,
    /// Threads with a row, and their start times.
    threads: HashMap<u32, u64>,
    /// Functions of the threads, by address.
    functions: HashMap<u64, Function>,
}

/// A function: its name, or its place in the file, and that file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Function {
    name: String,
    module: String,
}

impl ThreadStarts {
    /// Returns the rows of a thread's new record.
    pub(crate) fn rows(&mut self, raw: &ring_records::Task) -> Vec<TraceEvent> {
        let mut rows = Vec::new();
        let is_first = raw.thread == raw.process;
        let has_exited = raw.event == task_event::EXIT;
        if raw.event == task_event::EXEC || has_exited && is_first {
            self.processes.remove(&raw.process);
        }
        if has_exited {
            if let Some(process) = self.processes.get_mut(&raw.process) {
                process.threads.remove(&raw.thread);
            }
            return rows;
        }
        let process = self.processes.entry(raw.process).or_insert_with(|| {
            rows.extend(process_program::of(raw.process).map(|(path, script)| {
                TraceEvent::from(ProcessProgram {
                    at_ns: raw.at_ns,
                    process: Tgid(raw.process),
                    path,
                    script,
                })
            }));
            Process::default()
        });
        // At the end of the trace all threads have a record once more.
        if !is_first && process.threads.insert(raw.thread, raw.start_ns) != Some(raw.start_ns) {
            rows.push(process.start(raw, &mut self.libraries).into());
        }
        rows
    }
}

impl Process {
    fn start(&mut self, raw: &ring_records::Task, libraries: &mut Libraries) -> ThreadStart {
        let Function { name, module } = self.function(raw, libraries).unwrap_or_default();
        ThreadStart {
            at_ns: raw.at_ns,
            thread: Pid(raw.thread),
            process: Tgid(raw.process),
            start_ns: raw.start_ns,
            creator: Pid(raw.creator),
            routine: name,
            module,
        }
    }

    /// Finds the offset when the first thread needs it: a program that has just begun has no libraries yet.
    fn routine_offset(&mut self, id: u32, libraries: &mut Libraries) -> Option<u64> {
        if self.routine_offset.is_none() {
            self.mappings = mappings(id);
            let mut own = self.mappings.iter().filter(|one| one.is_c_library());
            let found = own.find_map(|mapping| {
                let key = (mapping.device.clone(), mapping.inode);
                let known = libraries.entry(key);
                *known.or_insert_with(|| routine_offset(&mapping.open(id)?))
            });
            self.routine_offset = Some(found);
        }
        self.routine_offset.flatten()
    }

    /// Returns the function of a thread.
    fn function(
        &mut self,
        raw: &ring_records::Task,
        libraries: &mut Libraries,
    ) -> Option<Function> {
        let offset = self.routine_offset(raw.process, libraries)?;
        let address = match raw.routine {
            // The programs read it where this machine's own C library has it.
            routine if routine != 0 && Some(offset) == own_routine_offset() => routine,
            _ => read_routine(raw, offset)?,
        };
        if let Some(known) = self.functions.get(&address) {
            return Some(known.clone());
        }
        let mut mapping = mapping_of(&self.mappings, address);
        if mapping.is_none() {
            // It has loaded a library since.
            self.mappings = mappings(raw.process);
            mapping = mapping_of(&self.mappings, address);
        }
        let function = mapping?.function(raw.process, address)?;
        self.functions.insert(address, function.clone());
        Some(function)
    }
}

/// Reads the function of a thread from the memory of its process.
fn read_routine(raw: &ring_records::Task, offset: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let place = raw.thread_pointer.wrapping_add(offset);
    let memory = File::open(format!("/proc/{}/mem", raw.process)).ok()?;
    memory.read_exact_at(&mut bytes, place).ok()?;
    // Its structure is used again when it has ended.
    let thread = format!("/proc/{}/task/{}", raw.process, raw.thread);
    let is_there = Path::new(&thread).exists();
    Some(u64::from_ne_bytes(bytes)).filter(|address| is_there && *address != 0)
}

/// Returns the offset of a thread's function from the thread pointer in this machine's C library; `None` if that is not
/// glibc.
pub(crate) fn own_routine_offset() -> Option<u64> {
    static OFFSET: LazyLock<Option<u64>> = LazyLock::new(|| {
        let id = std::process::id();
        let mappings = mappings(id);
        let mut libraries = mappings.iter().filter(|mapping| mapping.is_c_library());
        libraries.find_map(|mapping| routine_offset(&mapping.open(id)?))
    });
    *OFFSET
}

/// Reads the offset from a library.
fn routine_offset(library: &File) -> Option<u64> {
    let words: [u8; 12] = elf_symbols::constant(library, ROUTINE_CONSTANT)?;
    let offset = u32::from_ne_bytes(*words.last_chunk()?);
    #[cfg(target_arch = "aarch64")]
    {
        let length = u32::from_ne_bytes(elf_symbols::constant(library, SIZE_CONSTANT)?);
        Some(u64::from(offset).wrapping_sub(u64::from(length)))
    }
    #[cfg(not(target_arch = "aarch64"))]
    Some(u64::from(offset))
}

/// A part of a file that a process can execute.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    /// Name of its link below `/proc/PID/map_files`.
    name: String,
    begin: u64,
    end: u64,
    /// Offset of its begin in the file.
    offset: u64,
    device: String,
    inode: u64,
    path: PathBuf,
}

impl Mapping {
    /// Parses a line of `/proc/PID/maps`.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (name, rights, offset) = (words.next()?, words.next()?, words.next()?);
        let (device, inode, path) = (words.next()?, words.next()?, words.next()?.trim_start());
        let (begin, end) = name.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let is_file = path.starts_with('/') && rights.as_bytes().get(2) == Some(&b'x');
        Some(Self {
            name: name.to_owned(),
            begin: number(begin)?,
            end: number(end)?,
            offset: number(offset)?,
            device: device.to_owned(),
            inode: inode.parse().ok()?,
            path: PathBuf::from(path),
        })
        .filter(|_| is_file)
    }

    /// Returns whether it may have glibc's constants. Until glibc 2.34 the library of threads had them.
    fn is_c_library(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let begins = ["libc.so", "libc-", "libpthread.so", "libpthread-"];
        begins.iter().any(|begin| name.starts_with(begin))
    }

    /// Opens the file, even if its name is gone.
    fn open(&self, process: u32) -> Option<File> {
        let path = format!("/proc/{process}/map_files/{}", self.name);
        // To open a device may do something.
        let is_file = fs::metadata(&path).ok()?.is_file();
        File::open(path).ok().filter(|_| is_file)
    }

    fn function(&self, process: u32, address: u64) -> Option<Function> {
        let offset = (address - self.begin).checked_add(self.offset)?;
        let named = self.open(process).and_then(|file| elf_symbols::function_at(&file, offset));
        Some(Function {
            name: named.unwrap_or_else(|| format!("+{offset:#x}")),
            module: self.path.display().to_string(),
        })
    }
}

fn mappings(process: u32) -> Vec<Mapping> {
    let text = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(Mapping::of).collect()
}

fn mapping_of(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let holds = |one: &&Mapping| one.begin <= address && address < one.end;
    mappings.iter().find(holds)
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::ring_records::Plain as _;

    #[test]
    fn what_can_be_executed_of_files() {
        let line = "7f8000-7f9000 r-xp 00026000 fe:00 1033    /usr/lib/a b.so (deleted)";
        let found = Mapping::of(line).expect("a part of a file");
        assert_eq!((found.begin, found.end, found.offset), (0x7f8000, 0x7f9000, 0x26000));
        assert_eq!(found.path, Path::new("/usr/lib/a b.so (deleted)"));
        assert!(!found.is_c_library());
        let data = "7f8000-7f9000 rw-p 00026000 fe:00 1033    /usr/lib/libc.so.6";
        assert_eq!(Mapping::of(data), None);
        let code = data.replace("rw-p", "r-xp");
        assert!(Mapping::of(&code).expect("a part of a file").is_c_library());
        for line in ["7f80-7f90 r-xp 0 00:00 0  [vdso]", "7f80-7f90 r-xp 0 00:00 0 ", "x", ""] {
            assert_eq!(Mapping::of(line), None, "{line}");
        }
    }

    /// State that a thread shares with the test.
    struct Shared {
        barrier: Barrier,
        thread: AtomicU32,
    }

    extern "C" fn waits(shared: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the test keeps it until this thread has been joined.
        let shared = unsafe { &*shared.cast::<Shared>() };
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        shared.thread.store(id.cast_unsigned(), Ordering::Relaxed);
        shared.barrier.wait();
        shared.barrier.wait();
        ptr::null_mut()
    }

    /// On x86-64, glibc's `pthread_t` is the thread pointer.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_thread_s_function_is_read_from_its_process() {
        if own_routine_offset().is_none() {
            luc_testkit::skipped!("this machine's C library is not glibc");
            return;
        }
        let shared = Shared { barrier: Barrier::new(2), thread: AtomicU32::new(0) };
        let mut thread = 0;
        let argument = ptr::from_ref(&shared).cast_mut().cast();
        // SAFETY: all that it is given lives until it has been joined.
        let made = unsafe { libc::pthread_create(&raw mut thread, ptr::null(), waits, argument) };
        assert_eq!(made, 0);
        shared.barrier.wait();
        let bytes = [0; size_of::<ring_records::Task>()];
        let mut raw = ring_records::Task::read(&bytes).expect("all of it");
        raw.thread = shared.thread.load(Ordering::Relaxed);
        raw.process = std::process::id();
        raw.start_ns = 5;
        raw.thread_pointer = thread;
        let mut starts = ThreadStarts::default();
        let rows = [starts.rows(&raw), starts.rows(&raw)];
        shared.barrier.wait();
        // SAFETY: it was made above, and nobody else joins it.
        unsafe { libc::pthread_join(thread, ptr::null_mut()) };
        let [TraceEvent::ProcessProgram(program), TraceEvent::ThreadStart(start)] = &rows[0][..]
        else {
            panic!("{rows:?}");
        };
        assert!(program.path.contains("luc_probe"), "{program:?}");
        assert!(start.routine.ends_with("tests::waits"), "{start:?}");
        assert_eq!(start.module, program.path);
        assert!(rows[1].is_empty(), "{rows:?}");
    }
}
