//! Tests that the modules compile for every kernel whose headers are installed. `make test-all` adds the headers that
//! `scripts/headers.sh` fetches. Of each series in the machine's package sources these are the oldest and the newest
//! kernel, and the newest's variants.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use luc_module::build_module::embedded_sources::{LAGDISK, LUC, ModuleSources};

/// Major and minor version of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// Kernels that the module was tested on, by its own words.
fn tested() -> [Option<(u32, u32)>; 2] {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../kernel/luc/compat.h");
    let text = fs::read_to_string(header).expect("compat.h");
    let read = |name: &str| {
        let start = format!("#define {name} KERNEL_VERSION(");
        let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
        version(&line.replace(", ", "."))
    };
    [read("LUC_FIRST_TESTED"), read("LUC_LAST_TESTED")]
}

/// Folders of the kernels whose headers are installed; with `fetched` also those of `scripts/headers.sh`.
fn kernels(fetched: bool) -> BTreeMap<String, PathBuf> {
    let mut kernels = BTreeMap::new();
    let mut add = |folder: &Path, prefix: &str, below: &str| {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let build = entry.path().join(below);
            if let Some(release) = name.strip_prefix(prefix)
                && release.ends_with("-amd64")
                && build.join("Makefile").exists()
            {
                kernels.insert(release.to_owned(), build);
            }
        }
    };
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    if let Some(base) = base.filter(|_| fetched) {
        add(&base.join("luc/headers/usr/src"), "linux-headers-", "");
    }
    add(Path::new("/lib/modules"), "", "build");
    kernels
}

/// The releases whose headers the machine's package sources offer.
fn offered() -> BTreeSet<String> {
    let output = Command::new("apt-cache").args(["pkgnames", "linux-headers-"]).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&text).into_owned();
    let releases = text.lines().filter_map(|name| name.strip_prefix("linux-headers-"));
    releases
        // Names like 6.12-amd64 stand for the newest of a series.
        .filter(|release| release.ends_with("-amd64") && release.matches('.').count() > 1)
        .map(str::to_owned)
        .collect()
}

/// Compiles a module; what `make` said if it failed.
fn compile(
    name: &str,
    sources: ModuleSources,
    (release, headers): (&str, &Path),
    work: &Path,
) -> Result<(), String> {
    let folder = work.join(release).join(name);
    sources.write(&folder).map_err(|error| error.to_string())?;
    let output = Command::new("make")
        .arg("-C")
        .arg(headers)
        .arg(format!("M={}", folder.display()))
        .args(["-s", "modules"])
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .map_err(|error| error.to_string())?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_there = folder.join(name).with_extension("ko").exists();
    // A warning is what turns into an error, or into a crash, with the next kernel.
    if output.status.success() && is_there && !message.contains(": warning:") {
        return Ok(());
    }
    Err(format!("{name}.ko for {release}: {message}"))
}

#[test]
fn dkms_builds_for_the_kernels_that_were_tested_and_no_others() {
    let [Some(first), Some(last)] = tested() else {
        panic!("compat.h has no range");
    };
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../kernel/luc/dkms.conf");
    for (minor, suffix) in (0..30)
        .flat_map(|minor| [(minor, ".0-56-amd64"), (minor, ".117+deb12-amd64"), (minor, "-rc1")])
    {
        for major in [5, 6, 7] {
            let is_meant = (first..=last).contains(&(major, minor));
            let release = format!("{major}.{minor}{suffix}");
            // As dkms asks.
            let matched = Command::new("bash")
                .args(["-c", ". \"$0\"; [[ $1 =~ $BUILD_EXCLUSIVE_KERNEL ]]", conf, &release])
                .status()
                .expect("bash");
            assert_eq!(matched.success(), is_meant, "{release}");
        }
    }
}

#[test]
fn the_modules_compile_for_every_kernel_here() {
    compile_for(kernels(false));
}

#[test]
#[ignore = "needs headers of more kernels: `make test-all`"]
fn the_modules_compile_for_every_kernel_that_is_offered() {
    let here = kernels(true);
    let missing: Vec<String> =
        offered().into_iter().filter(|name| !here.contains_key(name)).collect();
    println!("offered by the package sources, not fetched: {}", missing.join(" "));
    compile_for(here);
}

fn compile_for(here: BTreeMap<String, PathBuf>) {
    let [first, last] = tested();
    let is_tested = |release: &str| {
        let version = version(release);
        version >= first && version <= last
    };
    let (kernels, others): (Vec<_>, Vec<_>) =
        here.iter().partition(|(release, _)| is_tested(release));
    if kernels.is_empty() {
        luc_testkit::skipped!("no kernel's headers are here (`scripts/headers.sh` fetches some)");
        return;
    }
    let work = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("headers");
    let (left, failures) = (Mutex::new(kernels.clone()), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let Some((release, headers)) = left.lock().expect("lock").pop() else {
                return;
            };
            for (name, sources) in [("luc", LUC), ("lagdisk", LAGDISK)] {
                if let Err(message) = compile(name, sources, (release, headers), &work) {
                    failures.lock().expect("lock").push(message);
                }
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
    });
    let names = |kernels: &[(&String, &PathBuf)]| {
        let names: Vec<&str> = kernels.iter().map(|(release, _)| release.as_str()).collect();
        names.join(" ")
    };
    // Not by println, which the test harness keeps to itself.
    let mut out = io::stderr();
    let _ = writeln!(out, "compiled for: {}", names(&kernels));
    let _ = writeln!(out, "not in the tested range, left out: {}", names(&others));
    let failures = failures.into_inner().expect("lock");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
