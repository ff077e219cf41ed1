//! Packages of what was built: the same bytes each time, with what they should have, and nothing left when they are
//! removed. Needs root, Debian's packaging tools and luc-fleet beside luc, says so if they are missing. `make
//! packages-test` tries them in a fresh root, by apt.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{LUC, is_root, stderr, stdout};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_installed(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

/// Packs what was built into `folder`, signed by `key`.
fn pack(folder: &Path, key: &str) -> Output {
    let build = Path::new(LUC).parent().expect("a folder");
    Command::new(root().join("scripts/packages.sh"))
        .args([build, folder])
        .env("SIGN_KEY", key)
        .env("SBOM", "no")
        .env("COMPRESSION", "0")
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .env("COMMIT", "commit 0123456789ab")
        .env("MAINTAINER", "Nobody <nobody@localhost>")
        .output()
        .expect("packages.sh runs")
}

/// Packages in a folder; `None`, and a line that says why, where they cannot be made.
fn packed(key: &str) -> Option<tempfile::TempDir> {
    let tools = ["dpkg-deb", "dpkg-shlibdeps", "objcopy", "xz"];
    if let Some(tool) = tools.into_iter().find(|tool| !is_installed(tool)) {
        luc_testkit::skipped!("needs {tool}");
        return None;
    }
    if !Path::new(LUC).with_file_name("luc-fleet").exists() {
        luc_testkit::skipped!("needs luc-fleet beside luc: `make build`");
        return None;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let made = pack(folder.path(), key);
    assert!(made.status.success(), "{}", stderr(&made));
    Some(folder)
}

/// Names and contents of a folder's files.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("read").flatten();
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("read"))
        })
        .collect()
}

/// The package whose name begins so.
fn package(folder: &Path, start: &str) -> PathBuf {
    let names = contents(folder).into_keys();
    let mut names = names.filter(|name| name.starts_with(start) && name.ends_with(".deb"));
    folder.join(names.next().expect("the package"))
}

/// The paths in a package.
fn paths(package: &Path) -> String {
    let listed = Command::new("dpkg-deb").arg("-c").arg(package).output();
    stdout(&listed.expect("dpkg-deb runs"))
}

#[test]
fn the_same_build_gives_the_same_bytes() {
    let keys = tempfile::tempdir().expect("a directory");
    let key = keys.path().join("key").display().to_string();
    let words = ["-q", "-t", "ed25519", "-N", "", "-C", "tester", "-f", &key];
    if !is_installed("ssh-keygen") || Command::new("ssh-keygen").args(words).status().is_err() {
        luc_testkit::skipped!("needs ssh-keygen");
        return;
    }
    let Some(first) = packed(&key) else { return };
    let second = packed(&key).expect("packed as before");
    assert!(is_signed(first.path(), &key));
    let (first, second) = (contents(first.path()), contents(second.path()));
    let names: Vec<_> = first.keys().collect();
    assert_eq!(names, second.keys().collect::<Vec<_>>());
    assert!(names.len() >= 5, "{names:?}");
    for (name, bytes) in &first {
        assert!(*bytes == second[name], "{name} differs");
    }
}

/// Whether `SHA256SUMS` has a signature by the key, and by that of nobody else, as the documentation verifies it.
fn is_signed(folder: &Path, key: &str) -> bool {
    let public = fs::read_to_string(format!("{key}.pub")).expect("read");
    let verified = |signer: &str| {
        let signers = format!("{key}.signers");
        fs::write(&signers, format!("{signer} {public}")).expect("written");
        let signature = folder.join("SHA256SUMS.sig");
        let sums = fs::File::open(folder.join("SHA256SUMS")).expect("opened");
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", "verify", "-I", "tester", "-n", "luc", "-f", &signers, "-s"]);
        let output = command.arg(signature).stdin(sums).output();
        output.expect("ssh-keygen runs").status.success()
    };
    verified("tester") && !verified("somebody")
}

#[test]
fn packages_have_what_users_look_for() {
    let Some(folder) = packed("") else { return };
    let luc = package(folder.path(), "luc_");
    let listed = paths(&luc);
    for path in [
        "/usr/bin/luc\n",
        "/usr/bin/luc-fleet\n",
        "/usr/lib/luc/libluc_gate_preload.so\n",
        "/usr/lib/luc/luc-exec\n",
        "/usr/lib/luc/lucd\n",
        "/usr/lib/systemd/system/lucd.service\n",
        "/usr/lib/systemd/system/lucd.socket\n",
        "/usr/share/man/man1/luc-demo.1.gz\n",
        "/usr/share/bash-completion/completions/luc\n",
        "/usr/share/zsh/vendor-completions/_luc\n",
        "/usr/share/fish/vendor_completions.d/luc.fish\n",
        "/usr/share/doc/luc/changelog.gz\n",
        "/usr/share/doc/luc/guide/slow-fsync.md\n",
        "/usr/share/doc/luc/reference/throttle.md\n",
        "/usr/share/doc/luc/copyright\n",
        "/usr/share/doc/luc/licenses.txt.gz\n",
    ] {
        assert!(listed.contains(path), "{path}: {listed}");
    }
    assert!(!listed.contains("/usr/src"), "{listed}");
    let pages = listed.lines().filter_map(|line| line.split("/man1/").nth(1));
    for page in pages.filter(|page| page.starts_with("luc-fleet-")) {
        let command = page.trim_start_matches("luc-fleet-").trim_end_matches(".1.gz");
        let is_there = listed.contains("/usr/bin/luc-fleet-store\n");
        assert!(!["push", "stored"].contains(&command) || is_there, "{page}");
    }
    let field = |name: &str| {
        let shown = Command::new("dpkg-deb").arg("-f").arg(&luc).arg(name).output();
        stdout(&shown.expect("dpkg-deb runs")).trim().to_owned()
    };
    assert!(field("Version").starts_with(env!("CARGO_PKG_VERSION")));
    let depends = field("Depends");
    assert!(depends.contains("libc6 (>=") && depends.contains("libelf"), "{depends}");
    let module = paths(&package(folder.path(), "luc-dkms_"));
    for name in ["dkms.conf", "Makefile", "Kbuild", "main.c", "luc.h"] {
        assert!(module.contains(&format!("/{name}\n")), "{name}: {module}");
    }
    let debug = paths(&package(folder.path(), "luc-dbgsym_"));
    assert_eq!(debug.matches(".debug\n").count(), 5, "{debug}");
}

/// Returns what a tool prints about a file.
fn said_by(tool: &str, option: &str, file: &Path) -> String {
    let said = Command::new(tool).arg(option).arg(file).output();
    stdout(&said.expect("it runs"))
}

/// A cancelled thread unwinds through the gate's library: each function tells how, and none has anything to clean up.
#[test]
fn a_cancelled_call_meets_nothing_to_clean_up() {
    if !is_installed("readelf") || !is_installed("nm") {
        luc_testkit::skipped!("needs readelf and nm");
        return;
    }
    let library = Path::new(LUC).with_file_name("libluc_gate_preload.so");
    let frames = said_by("readelf", "--debug-dump=frames", &library);
    let augmentations: Vec<&str> = frames
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Augmentation:"))
        .map(str::trim)
        .collect();
    // With a personality there would be a P.
    assert!(!augmentations.is_empty(), "{frames}");
    assert!(augmentations.iter().all(|&text| text == "\"zR\""), "{augmentations:?}");
    let symbols = said_by("nm", "--defined-only", &library);
    for name in ["fsync", "fdatasync", "msync"] {
        let is_it = |line: &&str| line.ends_with(&format!(" T {name}"));
        let start = symbols.lines().find(is_it).and_then(|line| line.get(..16));
        let start = start.expect("exported");
        assert!(frames.contains(&format!("pc={start}..")), "{name} at {start}");
    }
}

#[test]
fn nothing_is_left_of_a_package() {
    if !is_root() {
        return;
    }
    let Some(folder) = packed("") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let database = place.path().join("var/lib/dpkg");
    fs::create_dir_all(database.join("updates")).expect("made");
    fs::create_dir_all(database.join("info")).expect("made");
    fs::write(database.join("status"), "").expect("written");
    let dpkg = |words: &[&str], package: &Path| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", place.path().display()));
        command.args(["--force-depends", "--no-triggers", "--force-script-chrootless"]);
        let done = command.args(words).arg(package).output();
        let done = done.expect("dpkg runs");
        assert!(done.status.success(), "{words:?}: {}", stderr(&done));
    };
    let luc = package(folder.path(), "luc_");
    dpkg(&["--install"], &luc);
    let installed = place.path().join("usr/bin/luc");
    let said = Command::new(&installed).arg("--version").output();
    assert!(stdout(&said.expect("luc runs")).starts_with("luc "));
    // It finds the library where packages have it.
    let found =
        Command::new(&installed).args(["run", "--check", "--", "true"]).output().expect("luc runs");
    assert!(found.status.success(), "{}", stderr(&found));
    dpkg(&["--purge"], Path::new("luc"));
    assert!(!place.path().join("usr").exists());
}

/// Runs scripts of the Debian package as dpkg does at a removal and a purge. They run in a mount namespace whose
/// /etc, /run, /dev/shm and /var are the folder's. Stubs write down how they were called.
fn removal(place: &Path) -> Output {
    let script = r#"
        set -eu
        cd "$0"
        mkdir -p stubs etc/systemd/system/multi-user.target.wants etc/systemd/system/postgresql.service.d etc/luc \
            run/systemd/system run/luc/throttle run/luc-gate shm/luc-gate-0 shm/other var/lib/luc/throttle var/cache/luc
        : >etc/luc/throttle.toml
        : >etc/systemd/system/postgresql.service.d/50-luc.conf
        printf '[Service]\nExecStart=/usr/bin/luc throttle daemon\n' >etc/systemd/system/luc-throttle.service
        ln -s ../luc-throttle.service etc/systemd/system/multi-user.target.wants/
        for name in deb-systemd-invoke systemctl luc; do
            printf '#!/bin/sh\necho "%s $*" >>%s/calls\n' "$name" "$0" >stubs/$name
            chmod +x stubs/$name
        done
        for pair in etc:/etc run:/run shm:/dev/shm var/lib:/var/lib var/cache:/var/cache; do
            mount --bind "${pair%%:*}" "${pair##*:}"
        done
        export PATH="$0/stubs:$PATH"
        sh "$1/luc.prerm" remove
        sh "$1/luc.postrm" remove
        test -e etc/luc/throttle.toml
        sh "$1/luc.postrm" purge
    "#;
    let scripts = root().join("packaging/debian").canonicalize();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(place);
    let output = command.arg(scripts.expect("there")).output();
    output.expect("unshare runs")
}

#[test]
fn a_purge_ends_and_removes_all_that_luc_has_made() {
    if !is_root() {
        return;
    }
    // Not below what the script hides.
    let place = tempfile::tempdir_in(Path::new(LUC).parent().expect("a folder")).expect("made");
    let output = removal(place.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let calls = fs::read_to_string(place.path().join("calls")).expect("calls");
    for call in [
        "luc disable --all",
        "deb-systemd-invoke stop lucd.socket lucd.service",
        "deb-systemd-invoke stop luc-throttle.service",
        "luc throttle thaw --all",
        "systemctl --system daemon-reload",
    ] {
        assert!(calls.lines().any(|line| line == call), "{call}: {calls}");
    }
    for gone in [
        "etc/luc",
        "etc/systemd/system/luc-throttle.service",
        "run/luc",
        "run/luc-gate",
        "shm/luc-gate-0",
        "var/lib/luc",
        "var/cache/luc",
    ] {
        assert!(!place.path().join(gone).exists(), "{gone}");
    }
    let wants = place.path().join("etc/systemd/system/multi-user.target.wants");
    assert!(contents(&wants).is_empty());
    assert!(place.path().join("shm/other").exists());
}

#[test]
fn what_is_missing_is_named_in_one_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(root().join("scripts/packages.sh"));
    command.args([folder.path(), &folder.path().join("out")]);
    let output = command.env("SBOM", "no").output().expect("it runs");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}
