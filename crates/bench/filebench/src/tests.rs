//! Tests of the stock workloads on real files, and of refusals.

use std::collections::HashMap;

use super::*;
use luc_workload::scratch_directory::ScratchDirectory;

mod language_features;
mod shares;

/// Runs a workload for 0.5 s. Returns its counts by the flowop's name, after a check that no file is left.
fn counts(file: &str, set: &[&str], compat: bool) -> (FilebenchReport, HashMap<String, u64>) {
    counts_of(file, set, compat, 500_000_000)
}

/// Does the same with a run of `measured_ns`.
fn counts_of(
    file: &str,
    set: &[&str],
    compat: bool,
    measured_ns: u64,
) -> (FilebenchReport, HashMap<String, u64>) {
    let shm = std::path::Path::new("/dev/shm");
    let parent = if shm.is_dir() {
        ScratchDirectory::create(shm)
    } else {
        ScratchDirectory::create(&std::env::temp_dir())
    };
    let parent = parent.expect("scratch");
    let set: Vec<String> = set.iter().map(|pair| (*pair).to_owned()).collect();
    let workload = WorkloadFile::load(file, &set).expect("loads");
    let mut options = FilebenchOptions {
        directory: parent.path().to_path_buf(),
        measured_ns: None,
        seed: 1,
        compat,
        cold: false,
    };
    if !workload.is_open_ended(&options) {
        options.measured_ns = Some(measured_ns);
    }
    let report = workload.run(&options, &mut |_| {}).expect(file);
    assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    let rows = report.operations.iter();
    let counts = rows.map(|row| (row.operation.to_string(), row.count)).collect();
    (report, counts)
}

#[test]
fn a_cold_run_needs_root_and_says_so() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let set = ["nfiles=4".to_owned(), "nthreads=1".to_owned()];
    let workload = WorkloadFile::load("webserver", &set).expect("loads");
    let options = FilebenchOptions {
        directory: parent.path().to_path_buf(),
        measured_ns: Some(50_000_000),
        seed: 1,
        compat: false,
        cold: true,
    };
    match workload.run(&options, &mut |_| {}) {
        Ok(report) => assert!(report.cold && report.flowops > 0),
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("--cold") && said.contains("root"), "{said}");
        }
    }
    assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
}

#[test]
fn singlestreamread_reads_whole_calls() {
    let (report, counts) = counts("singlestreamread", &["filesize=8m"], false);
    let read = report.read_mib_per_second * report.head.measured_s;
    assert!(counts["seqread"] > 0);
    assert!((read / counts["seqread"] as f64 - 1.0).abs() < 1e-6, "{read} MiB in {counts:?}");
}

#[test]
fn appends_have_the_sizes_of_their_mode() {
    for (compat, mean) in [(false, 2.5), (true, 1.5)] {
        let (report, counts) = counts("varmail", &["meanappendsize=4", "nfiles=5000"], compat);
        let appends = (counts["appendfilerand2"] + counts["appendfilerand3"]) as f64;
        let bytes = report.written_mib_per_second * report.head.measured_s * f64::from(1 << 20);
        assert!(appends > 100.0);
        // A hundred draws have a standard error of 0.11.
        assert!((bytes / appends - mean).abs() < 0.5, "{bytes} bytes in {appends}");
    }
}

/// Checks that a file with this text is refused with these words.
fn refused(text: &str, words: &str) {
    let scratch = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let path = scratch.path().join("file.f");
    fs::write(&path, text).expect("write");
    let error = WorkloadFile::load(&path.display().to_string(), &[]).expect_err(text);
    let line = error.to_string();
    assert!(line.contains(words) && line.contains("file.f:") && !line.contains('\n'), "{line}");
}

#[test]
fn what_is_wrong_or_missing_is_named_with_its_place() {
    let process =
        |flowop: &str| format!("define process name=p {{ thread name=t {{\n flowop {flowop} }} }}");
    refused(&process("aiowrite name=a,iosize=1k"), ":2:18: aiowrite writes at random places only");
    refused(&process("sempost name=a,value=1"), ":2:9: this flowop has no target");
    refused(&process("sempost name=a,target=nobody"), ":2:24: unknown semblock 'nobody'");
    refused(&process("closefile name=a,$x=1"), "'$x' is no attribute of closefile");
    refused(&process("read name=a,filename=b,iosize=1k"), ":2:21: unknown file or fileset 'b'");
    refused(&process("closefile fd=1"), "'name' is missing");
    refused(&process("closefile name=c,fd=128"), "fd=128 is out of range");
    refused(&process("read name=a,iosize=$none"), "unknown variable 'none'");
    refused("enable multi master=me,client=you", "1:1: this makes several hosts start together");
    refused("run 5", "defines no process");
    // Processes without instances are not checked.
    let nobody = "define process name=q,instances=0 { thread name=u { flowop statfile name=v,filesetname=gone } }\n";
    refused(nobody, "defines no process that has threads");
    let somebody = "define fileset name=a,path=/x,entries=1\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }\n";
    WorkloadFile::parse("x", &format!("{somebody}{nobody}run 1\n"), &[]).expect("right");
    // Composites that use one another twice.
    let mut twice = String::from("define flowop name=c0 { flowop block name=b }\n");
    for depth in 1..32 {
        let inner = depth - 1;
        twice += &format!(
            "define flowop name=c{depth} {{ flowop c{inner} name=l flowop c{inner} name=r }}\n"
        );
    }
    refused(&twice, "stands for 131072 flowops");
    refused("define fileset name=\"../x\",path=/tmp", "no file name");
    refused(
        "set $ab=cvar(type=cvar-gamma,parameters=meen:5)",
        "unknown parameter 'meen'; did you mean 'mean'?",
    );
}

#[test]
fn a_missing_file_lists_what_there_is() {
    let error = WorkloadFile::load("/no/such.f", &[]).expect_err("must fail").to_string();
    assert!(error.contains("/no/such.f") && error.contains("varmail, fileserver"), "{error}");
    assert!(WorkloadFile::load("varmail", &["nfiles".to_owned()]).is_err());
}
