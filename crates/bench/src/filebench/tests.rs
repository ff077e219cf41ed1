//! The stock workloads on real files, and what is refused.

use std::collections::HashMap;

use super::*;
use crate::scratch::Scratch;

mod features;

/// What a run of 0.5 s counts, by the flowop's name; nothing is left of it.
fn counts(file: &str, set: &[&str], compat: bool) -> (Report, HashMap<String, u64>) {
    let shm = std::path::Path::new("/dev/shm");
    let parent = if shm.is_dir() {
        Scratch::create(shm)
    } else {
        Scratch::create(&std::env::temp_dir())
    };
    let parent = parent.expect("scratch");
    let set: Vec<String> = set.iter().map(|pair| (*pair).to_owned()).collect();
    let workload = Workload::load(file, &set).expect("loads");
    let mut options = Options {
        directory: parent.path().to_path_buf(),
        measured_ns: None,
        seed: 1,
        compat,
    };
    if !workload.is_open_ended(&options) {
        options.measured_ns = Some(500_000_000);
    }
    let report = workload.run(&options, &mut |_| {}).expect(file);
    assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    let rows = report.operations.iter();
    let counts = rows
        .map(|row| (row.operation.to_string(), row.count))
        .collect();
    (report, counts)
}

// So many files, as Filebench's deletion leaves out open ones: of few files, no name would be left to create.

/// Every flowop of a loop is done as often as the others, but for each client's last round, and but for
/// those named.
fn equal_shares(file: &str, flowops: usize, set: &[&str], except: &[&str]) {
    for compat in [false, true] {
        let (report, counts) = counts(file, set, compat);
        assert_eq!(counts.len(), flowops);
        let counted = counts
            .iter()
            .filter(|(name, _)| !except.contains(&name.as_str()));
        let all: Vec<u64> = counted.map(|(_, count)| *count).collect();
        let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        assert!(least > 0, "{file}: {counts:?}");
        assert!(
            most - least <= report.head.clients as u64,
            "{file}: {counts:?}"
        );
        assert_eq!(report.flowops, counts.values().sum::<u64>());
    }
}

#[test]
fn varmail_is_what_its_file_says() {
    // Filebench skips the deletion of a file that is open.
    equal_shares(
        "varmail",
        13,
        &["nthreads=2", "nfiles=5000"],
        &["deletefile1"],
    );
}

#[test]
fn fileserver_is_what_its_file_says() {
    let set = ["nthreads=2", "nfiles=5000", "filesize=8k"];
    equal_shares("fileserver", 11, &set, &["deletefile1"]);
}

#[test]
fn webserver_is_what_its_file_says() {
    // The log stays open: Filebench counts its opening.
    equal_shares("webserver", 31, &["nthreads=2"], &["appendlog"]);
}

#[test]
fn webproxy_is_what_its_file_says() {
    equal_shares(
        "webproxy",
        19,
        &["nthreads=2", "nfiles=5000"],
        &["deletefile1"],
    );
}

#[test]
fn singlestreamread_reads_whole_calls() {
    let (report, counts) = counts("singlestreamread", &["filesize=8m"], false);
    let read = report.read_mib_per_second * report.head.measured_s;
    assert!(counts["seqread"] > 0);
    assert!(
        (read / counts["seqread"] as f64 - 1.0).abs() < 1e-6,
        "{read} MiB in {counts:?}"
    );
}

#[test]
fn appends_have_the_sizes_of_their_mode() {
    for (compat, mean) in [(false, 2.5), (true, 1.5)] {
        let (report, counts) = counts("varmail", &["meanappendsize=4", "nfiles=5000"], compat);
        let appends = (counts["appendfilerand2"] + counts["appendfilerand3"]) as f64;
        let bytes = report.written_mib_per_second * report.head.measured_s * f64::from(1 << 20);
        assert!(appends > 100.0);
        // A hundred draws have a standard error of 0.11.
        assert!(
            (bytes / appends - mean).abs() < 0.5,
            "{bytes} bytes in {appends}"
        );
    }
}

/// The error of a file with this text.
fn refused(text: &str, words: &str) {
    let scratch = Scratch::create(&std::env::temp_dir()).expect("scratch");
    let path = scratch.path().join("file.f");
    fs::write(&path, text).expect("write");
    let error = Workload::load(&path.display().to_string(), &[]).expect_err(text);
    let line = error.to_string();
    assert!(
        line.contains(words) && line.contains("file.f:") && !line.contains('\n'),
        "{line}"
    );
}

#[test]
fn what_is_wrong_or_missing_is_named_with_its_place() {
    let process =
        |flowop: &str| format!("define process name=p {{ thread name=t {{\n flowop {flowop} }} }}");
    refused(
        &process("aiowrite name=a,iosize=1k"),
        ":2:18: aiowrite writes at random places only",
    );
    refused(
        &process("sempost name=a,value=1"),
        ":2:9: this flowop has no target",
    );
    refused(
        &process("sempost name=a,target=nobody"),
        ":2:24: unknown semblock 'nobody'",
    );
    refused(
        &process("closefile name=a,$x=1"),
        "'$x' is no attribute of closefile",
    );
    refused(
        &process("read name=a,filename=b,iosize=1k"),
        ":2:21: unknown file or fileset 'b'",
    );
    refused(&process("closefile fd=1"), "'name' is missing");
    refused(
        &process("closefile name=c,fd=128"),
        "fd=128 is out of range",
    );
    refused(
        &process("read name=a,iosize=$none"),
        "unknown variable 'none'",
    );
    refused(
        "enable multi master=me,client=you",
        "1:1: this makes several hosts start together",
    );
    refused("run 5", "defines no process");
    refused("define fileset name=\"../x\",path=/tmp", "no file name");
    refused(
        "set $ab=cvar(type=cvar-gamma,parameters=meen:5)",
        "unknown parameter 'meen'; did you mean 'mean'?",
    );
}

#[test]
fn a_missing_file_lists_what_there_is() {
    let error = Workload::load("/no/such.f", &[])
        .expect_err("must fail")
        .to_string();
    assert!(
        error.contains("/no/such.f") && error.contains("varmail, fileserver"),
        "{error}"
    );
    assert!(Workload::load("varmail", &["nfiles".to_owned()]).is_err());
}
