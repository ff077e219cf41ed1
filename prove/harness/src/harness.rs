//! Work directory of the evaluation, and programs that run until they end or the user interrupts them.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use luc_host::interrupt_flag;
use luc_host::private_directory;
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Options;
use crate::error::EvaluateError;
use crate::machine;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// File that says, while it is open, how many microseconds a processor may take to wake up. See
/// Documentation/power/pm_qos_interface.rst.
const WAKE_UP_LATENCY: &str = "/dev/cpu_dma_latency";

/// Maximum stolen share of the processors' time; above it a run is made again. A rented machine always loses about 1 %,
/// whatever the setting.
pub const MAX_STOLEN_SHARE: f64 = 0.02;

/// Work directory, options, and runs made so far.
#[derive(Debug)]
pub struct Harness {
    pub part: &'static str,
    pub options: Options,
    work: PathBuf,
    runs: RefCell<Vec<Value>>,
    disks: Cell<usize>,
    disturbed: Cell<usize>,
    awake: OnceCell<File>,
}

#[derive(Debug)]
pub struct Finished {
    pub status: i32,
    pub stdout: String,
    /// The end of its standard error.
    pub said: String,
}

impl Harness {
    pub fn open(part: &'static str, options: &Options) -> Result<Self, EvaluateError> {
        let name = format!("luc-evaluate-{}", std::process::id());
        let temporary = std::env::temp_dir();
        let work = private_directory::create(&temporary, &name)
            .map_err(EvaluateError::file("make a directory in", &temporary))?;
        Ok(Self {
            part,
            options: options.clone(),
            work,
            runs: RefCell::default(),
            disks: Cell::new(0),
            disturbed: Cell::new(0),
            awake: OnceCell::new(),
        })
    }

    /// Lets users without rights pass through the directory to files whose names they know. Services that refuse to be
    /// root have their files in it.
    pub fn let_others_pass(&self) -> Result<(), EvaluateError> {
        fs::set_permissions(&self.work, fs::Permissions::from_mode(0o711))
            .map_err(EvaluateError::file("open to others", &self.work))
    }

    pub fn folder(&self) -> &Path {
        &self.work
    }

    /// Returns a path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    pub fn luc_path(&self) -> &Path {
        &self.options.luc
    }

    pub fn luc<S: AsRef<str>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(&self.options.luc);
        command.args(words.iter().map(AsRef::as_ref));
        command
    }

    /// Runs `luc WORDS`, whose output is JSON. Status 1 is bad news, and an answer too.
    pub fn json<S: AsRef<str>>(&self, words: &[S]) -> Result<Value, EvaluateError> {
        self.json_of(&mut self.luc(words))
    }

    /// Runs a command line of `luc`, whose output is JSON.
    pub fn json_of(&self, command: &mut Command) -> Result<Value, EvaluateError> {
        let output = self.execute(command, &[0, 1])?.stdout;
        serde_json::from_str(&output).map_err(|_| EvaluateError::Missing {
            what: format!("the JSON of `{}`", line(command)),
        })
    }

    /// Returns the next number of a disk.
    pub fn next_disk(&self) -> usize {
        self.disks.replace(self.disks.get() + 1)
    }

    /// Keeps a run for the raw data.
    pub fn keep(&self, mut run: Value) {
        run["load"] = machine::load().into();
        self.runs.borrow_mut().push(run);
    }

    /// Counts a run that is made again because too much processor time was stolen during it.
    pub fn count_disturbed(&self) {
        self.disturbed.set(self.disturbed.get() + 1);
    }

    /// Keeps idle processors from halting until the part ends. A virtual processor that halts loses its place on the
    /// host. Its next wake-up takes as long as the host's other guests please.
    pub fn keep_processors_awake(&self) -> Result<(), EvaluateError> {
        let failed = || EvaluateError::file("write", WAKE_UP_LATENCY);
        let mut file = File::options().write(true).open(WAKE_UP_LATENCY).map_err(failed())?;
        file.write_all(&0_i32.to_ne_bytes()).map_err(failed())?;
        self.awake.get_or_init(|| file);
        Ok(())
    }

    /// Describes the measures against other guests of the host, and how often they were not enough; may be empty.
    pub fn disturbances(&self) -> String {
        let awake = match self.awake.get() {
            None => "",
            Some(_) => {
                " Idle processors polled and did not halt (0 in /dev/cpu_dma_latency), in every \
                 setting."
            }
        };
        awake.to_owned() + &self.disturbed_runs()
    }

    fn disturbed_runs(&self) -> String {
        match self.disturbed.get() {
            0 => String::new(),
            count => format!(
                " The machine is a virtual one that others share: {count} runs during which the \
                 hypervisor took more than {} % of the processors' time were made again, whatever \
                 they had shown; they are in the raw data, marked `disturbed`.",
                MAX_STOLEN_SHARE * 100.0
            ),
        }
    }

    pub fn runs(&self) -> Value {
        Value::Array(self.runs.borrow().clone())
    }

    /// Runs a program to its end; a signal ends it early. `accept` are the good exit statuses.
    pub fn execute(
        &self,
        command: &mut Command,
        accept: &[i32],
    ) -> Result<Finished, EvaluateError> {
        stop_if_interrupted()?;
        self.finish(command, accept, true)
    }

    /// Returns the installed version of one of the distribution's packages.
    ///
    /// # Errors
    /// [`EvaluateError`]: there is no `dpkg-query`, or the package is not installed.
    pub fn package_version(&self, package: &str) -> Result<String, EvaluateError> {
        let mut command = Command::new("dpkg-query");
        command.args(["--show", "--showformat", "${Version}", package]);
        let version = self.execute(&mut command, &[0])?.stdout;
        if version.is_empty() {
            return Err(missing("a package's version"));
        }
        Ok(version)
    }

    /// Runs a program as [`Harness::execute`] does, for cleaning up: also after a signal.
    pub fn finish(
        &self,
        command: &mut Command,
        accept: &[i32],
        stoppable: bool,
    ) -> Result<Finished, EvaluateError> {
        let (out, err) = (self.path("stdout"), self.path("stderr"));
        let create = |path: &PathBuf| File::create(path).map_err(EvaluateError::file("make", path));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&err)?)
            .spawn()
            .map_err(EvaluateError::file("run", command.get_program()))?;
        let status = wait(&mut child, stoppable)
            .map_err(EvaluateError::file("wait for", command.get_program()))?;
        if stoppable {
            stop_if_interrupted()?;
        }
        let said = tail(&read(&err)?);
        match status.code().filter(|code| accept.contains(code)) {
            Some(status) => Ok(Finished { status, stdout: read(&out)?, said }),
            None => Err(EvaluateError::Command {
                command: line(command),
                how: status.to_string(),
                said,
            }),
        }
    }

    /// Compiles a C program or, with `-shared` among the words, a library.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        words: &[&str],
    ) -> Result<PathBuf, EvaluateError> {
        let (path, file) = (self.path(name), self.path(&format!("{name}.c")));
        fs::write(&file, source).map_err(EvaluateError::file("write", &file))?;
        let mut command = Command::new("cc");
        command.args(["-O2", "-pthread"]).args(words);
        command.arg("-o").arg(&path).arg(&file);
        self.execute(&mut command, &[0])?;
        Ok(path)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.work) {
            eprintln!("luc-evaluate: {} is left: {error}", self.work.display());
        }
    }
}

/// Fails once the user has interrupted the evaluation.
///
/// # Errors
/// [`EvaluateError::Interrupted`].
pub fn stop_if_interrupted() -> Result<(), EvaluateError> {
    if interrupt_flag::interrupted() { Err(EvaluateError::Interrupted) } else { Ok(()) }
}

/// Waits for a child. If `stoppable`, a signal to this process becomes SIGTERM for the child.
pub fn wait(child: &mut Child, stoppable: bool) -> std::io::Result<ExitStatus> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stoppable && interrupt_flag::interrupted() && !told {
            told = kill_process(Pid::from_child(child), Signal::TERM).is_ok();
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Formats a command line for pages and raw data: programs by their names, not their paths.
pub fn line(command: &Command) -> String {
    let name = |word: &std::ffi::OsStr| {
        let path = Path::new(word);
        let short = path.is_absolute().then(|| path.file_name()).flatten();
        short.unwrap_or(word).to_string_lossy().into_owned()
    };
    let quoted = |word: String| {
        if word.contains(' ') { format!("'{word}'") } else { word }
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(name).map(quoted).collect();
    words.join(" ")
}

/// Parses JSON; `what` names it in the error.
///
/// # Errors
/// [`EvaluateError::Missing`].
pub fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, EvaluateError> {
    serde_json::from_str(text).map_err(|_| missing(what))
}

/// Returns a count in a reply.
///
/// # Errors
/// [`EvaluateError::Missing`].
pub fn count(value: &Value, key: &str) -> Result<u64, EvaluateError> {
    value[key].as_u64().ok_or_else(|| missing(key))
}

/// Returns the elements of an array; none of another value.
#[must_use]
pub fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the elements of an array; `what` names it in the error.
///
/// # Errors
/// [`EvaluateError::Missing`].
pub fn array<'v>(value: &'v Value, what: &str) -> Result<&'v [Value], EvaluateError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| missing(what))
}

/// Returns a number in a reply.
pub fn figure(value: &Value, key: &str) -> Result<f64, EvaluateError> {
    value[key].as_f64().ok_or_else(|| missing(key))
}

/// Returns the error of a figure that is not there.
#[must_use]
pub fn missing(what: &str) -> EvaluateError {
    EvaluateError::Missing { what: format!("'{what}'") }
}

/// Reads a JSON file that a program has written.
pub fn read_json(path: &Path) -> Result<Value, EvaluateError> {
    parse(&read(path)?, "the report")
}

/// Reads a JSON file as a type.
///
/// # Errors
/// [`EvaluateError`]: it cannot be read, or has something else.
pub fn read_json_as<T: DeserializeOwned>(path: &Path) -> Result<T, EvaluateError> {
    let wrong = |error| missing(&format!("what is in {} ({error})", path.display()));
    serde_json::from_str(&read(path)?).map_err(wrong)
}

fn read(path: &Path) -> Result<String, EvaluateError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(EvaluateError::file("read", path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes a folder with all that is in it, if it is there.
///
/// # Errors
/// [`EvaluateError::File`].
pub fn remove_folder(folder: &Path) -> Result<(), EvaluateError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(EvaluateError::file("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Returns the number of bytes in the files of a directory.
pub fn directory_bytes(path: &Path) -> Result<u64, EvaluateError> {
    let failed = || EvaluateError::file("read", path);
    let mut bytes = 0;
    for entry in fs::read_dir(path).map_err(failed())? {
        let about = entry.and_then(|entry| entry.metadata());
        bytes += about.map_err(failed())?.len();
    }
    Ok(bytes)
}

/// Joins the last few lines.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_name_programs_without_their_places() {
        let mut command = Command::new("/a/b/luc");
        command.args(["run", "--json", "/tmp/x/gate.json", "--", "/a/b/luc", "a b"]);
        assert_eq!(line(&command), "luc run --json gate.json -- luc 'a b'");
    }

    #[test]
    fn the_end_of_an_error() {
        assert_eq!(tail("1\n2\n3\n4\n5\n6\n"), "2; 3; 4; 5; 6");
    }
}
