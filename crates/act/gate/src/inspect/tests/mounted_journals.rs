//! Tests with the journals of real file systems, which root mounts from image files. Each test does so in a thread
//! with a mount namespace of its own. Whatever ends the thread takes mounts and loop devices with it.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use super::super::InspectError;
use super::super::filesystem::{FileSystemJournal, of_device, of_path};
use super::super::raw::{
    FEATURE_COMPAT_FAST_COMMIT, JournalKind, features_by_ioctl, features_by_superblock,
    has_seen_fast_commits, journal_of_device_raw, journal_of_file_raw,
};

/// Runs `test` on a folder where a fresh file system made by `mkfs` is mounted, or says why not.
fn on_mounted(mkfs: &[&str], mount_options: &str, test: impl FnOnce(&Path) + Send) {
    let outcome = thread::scope(|scope| {
        scope.spawn(|| in_private_namespace(mkfs, mount_options, test)).join()
    });
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => luc_testkit::skipped!("{reason}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn in_private_namespace(
    mkfs: &[&str],
    mount_options: &str,
    test: impl FnOnce(&Path),
) -> Result<(), String> {
    if !rustix::process::getuid().is_root() {
        return Err("mounting a file system needs root".to_owned());
    }
    // SAFETY: only this thread's namespace changes, and no other thread depends on its mounts.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(format!("no mount namespace: {}", std::io::Error::last_os_error()));
    }
    run(Command::new("mount").args(["--make-rprivate", "/"]))?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (image, target) = (folder.path().join("image"), folder.path().join("a folder"));
    File::create(&image)
        .and_then(|file| file.set_len(320 << 20))
        .and_then(|()| fs::create_dir(&target))
        .map_err(|error| error.to_string())?;
    run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(&image))?;
    run(Command::new("mount").args(["-o", mount_options]).arg(&image).arg(&target))?;
    let mounted = Mounted(&target);
    test(mounted.0);
    Ok(())
}

/// Unmounts when it goes, also in a panic.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if let Err(reason) = run(Command::new("umount").arg("-l").arg(self.0)) {
            println!("{reason}");
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or(format!("{name}: {}", message.trim()))
}

fn expect(target: &Path, journal: &FileSystemJournal, kind: JournalKind) {
    let device = fs::metadata(target).unwrap().dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    assert_eq!(journal_of_device_raw(major, minor), kind);
    assert_eq!(journal_of_file_raw(File::open(target).unwrap().as_raw_fd()), kind);

    fs::write(target.join("file"), "x").unwrap();
    for system in [of_path(&target.join("file")).unwrap(), of_device(major, minor).unwrap()] {
        assert_eq!(system.journal, *journal);
        assert_eq!(system.device, (major, minor));
        assert_eq!(system.mount_point, target);
        assert!(system.name.starts_with("loop"), "{system:?}");
    }
}

#[test]
fn a_journal() {
    on_mounted(&["mkfs.ext4", "-q", "-O", "^fast_commit"], "loop", |target| {
        expect(target, &FileSystemJournal::Jbd2, JournalKind::Jbd2);
    });
}

#[test]
fn a_journal_with_fast_commit() {
    on_mounted(&["mkfs.ext4", "-q", "-O", "fast_commit"], "loop", |target| {
        expect(target, &FileSystemJournal::Jbd2FastCommit, JournalKind::FastCommit);
    });
}

/// Kernels differ in which of the sources they have, so each is asked alone.
#[test]
fn each_source_tells_fast_commit() {
    on_mounted(&["mkfs.ext4", "-q", "-O", "fast_commit"], "loop", |target| {
        let system = of_path(target).unwrap();
        let (name, (major, minor)) = (system.name.as_bytes(), system.device);
        assert!(!has_seen_fast_commits(name));
        let file = File::create(target.join("file")).unwrap();
        file.sync_all().unwrap();
        assert!(has_seen_fast_commits(name));

        let features = features_by_superblock(major, minor, name).unwrap();
        assert_ne!(features & FEATURE_COMPAT_FAST_COMMIT, 0, "{features:x}");
        match features_by_ioctl(file.as_raw_fd()) {
            Some(told) => assert_eq!(told, features),
            None => luc_testkit::skipped!("the ioctl needs Linux >= 6.18"),
        }
    });
}

#[test]
fn data_journalling_switches_fast_commit_off() {
    on_mounted(&["mkfs.ext4", "-q", "-O", "fast_commit"], "loop,data=journal", |target| {
        expect(target, &FileSystemJournal::Jbd2, JournalKind::Jbd2);
    });
}

#[test]
fn no_journal() {
    on_mounted(&["mkfs.ext4", "-q", "-O", "^has_journal"], "loop", |target| {
        expect(target, &FileSystemJournal::None, JournalKind::None);
    });
    on_mounted(&["mkfs.ext2", "-q"], "loop", |target| {
        expect(target, &FileSystemJournal::None, JournalKind::None);
    });
}

#[test]
fn another_file_system() {
    on_mounted(&["mkfs.xfs", "-q"], "loop", |target| {
        expect(target, &FileSystemJournal::NotExt4("xfs".to_owned()), JournalKind::NotExt4);
    });
    on_mounted(&["mkfs.btrfs", "-q"], "loop", |target| {
        assert_eq!(
            of_path(target).unwrap().journal,
            FileSystemJournal::NotExt4("btrfs".to_owned())
        );
    });
}

#[test]
fn file_systems_without_a_device() {
    let system = of_path(Path::new("/proc/self")).unwrap();
    assert_eq!(system.journal, FileSystemJournal::NotExt4("proc".to_owned()));
    assert_eq!((system.device.0, system.mount_point.as_path()), (0, Path::new("/proc")));
    let system = of_path(Path::new("/dev/null")).unwrap();
    assert!(matches!(system.journal, FileSystemJournal::NotExt4(_)), "{system:?}");
}

#[test]
fn what_is_not_there_is_an_error() {
    assert!(matches!(of_path(Path::new("/no/such")), Err(InspectError::Io { .. })));
    assert!(matches!(of_device(4095, 7), Err(InspectError::NotMounted { major: 4095, minor: 7 })));
}
