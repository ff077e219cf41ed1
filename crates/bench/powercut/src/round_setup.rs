//! A fresh disk with a mounted file system and clients on it; all gone when dropped.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use luc_disk::MountSpec;
use luc_host::private_directory;
use luc_units::OnPath as _;
use luc_workload::workers::ClientKind;

use super::PowercutRequest;
use super::error::PowercutError;
use super::trial_disk::TrialDisk;
use crate::stray_processes::kill_strays;

/// Time for killed processes to release the file system.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// Environment variable that names the directory under trial.
const DIRECTORY_VARIABLE: &str = "LUC_POWERCUT_DIR";

/// Disk, mount and clients of one round of power cuts.
pub(super) struct RoundSetup {
    pub(super) disk: TrialDisk,
    pub(super) device: PathBuf,
    pub(super) dir: PathBuf,
    mount_options: String,
    /// Holds `dir` and the clients' standard error.
    work: PathBuf,
    clients: Option<Child>,
    mounted: bool,
}

impl RoundSetup {
    pub(super) fn create(plan: &PowercutRequest) -> Result<Self, PowercutError> {
        let name = format!("powercut-{}", std::process::id());
        let temporary = std::env::temp_dir();
        remove_stale(&temporary);
        let work = private_directory::create(&temporary, &format!("luc-{name}"))
            .map_err(PowercutError::io("making a directory for the trial", &temporary))?;
        let dir = work.join("mnt");
        fs::create_dir(&dir)
            .map_err(PowercutError::io("making a directory for the trial", &work))?;
        let (disk, device) =
            TrialDisk::create(plan, &name, &dir).inspect_err(|_| remove_work(&work))?;
        Ok(Self {
            disk,
            device,
            dir,
            mount_options: plan.mount_options.clone(),
            work,
            clients: None,
            mounted: true,
        })
    }

    /// Starts the clients and returns their standard output.
    pub(super) fn start(
        &mut self,
        plan: &PowercutRequest,
        seed: u64,
    ) -> Result<ChildStdout, PowercutError> {
        let arguments = client_arguments(plan, &self.dir, seed);
        let words: Vec<&OsString> = plan.wrap.iter().chain(&arguments).collect();
        let program = words[0].to_string_lossy().into_owned();
        let stderr = self.stderr_path();
        let stderr = File::create(&stderr).map_err(PowercutError::io("making a file", &stderr))?;
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.dir)
            .env(DIRECTORY_VARIABLE, &self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0);
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let start = |reason| PowercutError::Start { program: program.clone(), reason };
        let mut child = command.spawn().map_err(start)?;
        let stdout = child.stdout.take();
        self.clients = Some(child);
        stdout.ok_or_else(|| start(io::ErrorKind::BrokenPipe.into()))
    }

    /// Describes how the clients ended by themselves: status and last words.
    pub(super) fn how_ended(&mut self) -> String {
        let status = match self.clients.as_mut().map(Child::wait) {
            Some(Ok(status)) => status.to_string(),
            _ => "unknown status".to_owned(),
        };
        let said = fs::read(self.stderr_path()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        // An error of ours or of the argument parser comes first, a program's usually last.
        let ours = |line: &&str| line.starts_with("luc: ") || line.starts_with("error: ");
        match lines.clone().find(ours).or_else(|| lines.next_back()) {
            Some(line) => format!("{status}: {line}"),
            None => status,
        }
    }

    /// Kills the clients' process group and waits for its leader.
    pub(super) fn kill_clients(&mut self) {
        if let Some(mut child) = self.clients.take() {
            // SAFETY: a system call with plain integers. The group is that of our child, which has
            // not been waited for, or has only just ended, and so cannot be somebody else's.
            unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
            // It was killed: its status says nothing.
            let _ = child.wait();
        }
    }

    /// Unmounts, waiting for killed processes to be gone.
    pub(super) fn unmount(&mut self) -> Result<(), PowercutError> {
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        while self.mounted {
            match luc_disk::unmount(&self.dir) {
                Ok(()) => self.mounted = false,
                Err(error) if Instant::now() >= deadline => return Err(error.into()),
                Err(_) => {
                    kill_strays(DIRECTORY_VARIABLE, &self.dir);
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
        Ok(())
    }

    pub(super) fn mount(&mut self) -> Result<(), luc_disk::Error> {
        let mount = MountSpec { dir: self.dir.clone(), options: self.mount_options.clone() };
        luc_disk::mount(&self.device, &mount)?;
        self.mounted = true;
        Ok(())
    }

    /// Removes everything, and reports failures.
    pub(super) fn remove(mut self) -> Result<(), PowercutError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), PowercutError> {
        if self.work == PathBuf::new() {
            return Ok(());
        }
        self.kill_clients();
        // A failure now would only be repeated on drop.
        let work = std::mem::take(&mut self.work);
        let mut end_users = || kill_strays(DIRECTORY_VARIABLE, &self.dir);
        self.disk.remove(&self.dir, RELEASE_TIMEOUT, &mut end_users)?;
        remove_work(&work);
        Ok(())
    }

    fn stderr_path(&self) -> PathBuf {
        self.work.join("stderr")
    }
}

impl Drop for RoundSetup {
    fn drop(&mut self) {
        // Another error, or an interrupt, is on its way to the user already.
        let _ = self.clear();
    }
}

/// Removes the work directory; never reaches into a directory that is still mounted.
fn remove_work(work: &Path) {
    let _ = fs::remove_file(work.join("stderr"));
    let _ = fs::remove_dir(work.join("mnt"));
    let _ = fs::remove_dir(work);
}

/// Removes the directories of trials that were killed, once their disks are gone. Anybody may have made something of
/// that name in a directory for all: only a directory of this user's own, which nobody else may enter, is one.
fn remove_stale(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix("luc-powercut-"))
            .and_then(|rest| rest.split_once('-'))
            .map(|(process, _)| process);
        let ended = |process: &str| !Path::new("/proc").join(process).exists();
        if process.is_some_and(|process| process.parse::<u32>().is_ok() && ended(process))
            && private_directory::is_own(&entry.path())
        {
            remove_work(&entry.path());
        }
    }
}

fn client_arguments(plan: &PowercutRequest, dir: &Path, seed: u64) -> Vec<OsString> {
    if let Some(command) = &plan.command {
        return command.clone();
    }
    let mut words: Vec<OsString> = vec![plan.luc.clone().into(), "bench".into()];
    words.extend(["ack-client", "--dir"].map(OsString::from));
    words.push(dir.into());
    words.extend(["--seed".to_owned(), seed.to_string()].map(OsString::from));
    words.extend(["--threads".to_owned(), plan.clients.to_string()].map(OsString::from));
    if plan.kind == ClientKind::Process {
        words.push("--processes".into());
    }
    if plan.unsafe_no_fsync {
        words.push("--unsafe-no-fsync".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_own_directories_are_stale() {
        let temporary = tempfile::tempdir().expect("a folder");
        let path = |name: &str| temporary.path().join(name);
        let fill = |folder: &Path| {
            fs::create_dir_all(folder.join("mnt")).expect("made");
            fs::write(folder.join("stderr"), "precious").expect("written");
        };
        // The number of no process.
        let own =
            private_directory::create(temporary.path(), "luc-powercut-4294967295").expect("made");
        fill(&own);
        // Of a process that lives.
        let mine = format!("luc-powercut-{}", std::process::id());
        let living = private_directory::create(temporary.path(), &mine).expect("made");
        fill(&living);
        // A link to somewhere else, and what others may enter.
        let elsewhere = path("elsewhere");
        fill(&elsewhere);
        symlink(&elsewhere, path("luc-powercut-4294967295-x")).expect("linked");
        symlink(&elsewhere, path("luc-powercut-4294967294")).expect("linked");
        let open = path("luc-powercut-4294967295-open");
        fill(&open);
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("opened");
        remove_stale(temporary.path());
        assert!(!own.exists());
        for folder in [&living, &elsewhere, &open] {
            assert!(folder.join("stderr").exists() && folder.join("mnt").exists());
        }
    }
}
