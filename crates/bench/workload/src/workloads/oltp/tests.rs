//! The workload on small databases.

use super::*;
use crate::scratch_directory::ScratchDirectory;

fn plan(directory: &Path, parameters: OltpParameters) -> Oltp {
    Oltp { timed: TimedPlan::of_threads(directory, parameters.clients(), 300_000_000), parameters }
}

#[test]
fn every_operation_runs_and_nothing_is_left() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let parameters = OltpParameters {
        readers: 2,
        writers: 2,
        files: 3,
        file_size_bytes: 64 << 10,
        write_durability: SyncMethod::Fsync,
        ..LUC
    };
    let report = run(&plan(parent.path(), parameters), &mut |_| {}).expect("run");
    assert_eq!(report.operations.len(), 5);
    assert!(report.operations.iter().all(|figures| figures.count > 0), "{report:?}");
    let of = |index: usize| report.operations[index].count;
    assert_eq!(report.flowops, of(READ) + of(WRITE) + of(LOG_WRITE));
    assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
}

#[test]
fn coupled_writers_keep_step_with_the_readers() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let parameters = OltpParameters {
        readers: 3,
        writers: 2,
        files: 2,
        file_size_bytes: 64 << 10,
        read_stores: 100,
        write_durability: SyncMethod::None,
        log_durability: SyncMethod::None,
        ..FILEBENCH
    };
    let report = run(&plan(parent.path(), parameters), &mut |_| {}).expect("run");
    let count = |name: &str| {
        let row = report.operations.iter().find(|row| row.operation == name);
        row.map_or(0, |row| row.count)
    };
    let (reads, writes, log) = (count("read"), count("write"), count("logwrite"));
    assert!(reads > 0 && writes > 0 && log > 0, "{report:?}");
    // The slowest consumer is at most its highwater mark and the readers behind.
    let bound = |bursts: u64, value: u64, ahead: u64| ahead + value * (bursts + 1) + 3;
    assert!(reads <= bound(log, 3200, 1000), "{reads} {log}");
    assert!(reads <= bound(writes / 2 / 100 + 1, 1000, 2000), "{reads} {writes}");
    assert!(writes <= 2 * 100 * (reads / 1000 + 1), "{reads} {writes}");
}

#[test]
fn roles_are_readers_writers_log() {
    let parameters = OltpParameters { readers: 1, writers: 2, ..LUC };
    let plan = plan(Path::new("/x"), parameters);
    let roles: Vec<Role> = (0..parameters.clients()).map(|c| plan.role(c)).collect();
    assert_eq!(roles, [Role::Reader(0), Role::Writer(0), Role::Writer(1), Role::Log]);
}

#[test]
fn parameters_are_checked() {
    for (bad, words) in [
        (OltpParameters { files: 0, ..LUC }, "--files 0"),
        (OltpParameters { readers: 0, ..FILEBENCH }, "--readers 0"),
        (OltpParameters { io_size_bytes: 0, ..LUC }, "--io-size 0"),
        (OltpParameters { log_io_size_bytes: 1 << 30, ..LUC }, "--log-io-size"),
    ] {
        let error = run(&plan(Path::new("/x"), bad), &mut |_| {}).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
}
