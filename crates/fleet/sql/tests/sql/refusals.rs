//! What cannot be done is said in one line.

use std::fs;
use std::process::Output;

use crate::{Asked, program};

fn assert_refused(out: &Output, words: &[&str]) {
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("luc-fleet-sql: "), "{errors}");
    for word in words {
        assert!(errors.contains(word), "{word}: {errors}");
    }
    assert!(out.stdout.is_empty());
}

#[test]
fn a_query_that_is_none_is_refused() {
    let asked = Asked::small();
    let deep = format!("select {}1{}", "(".repeat(400), ")".repeat(400));
    let long = format!("select 1{}", "+1".repeat(1_000));
    for (query, words) in [
        ("selec 1", &["selec", "--tables"][..]),
        ("", &["--tables"]),
        ("select nothing from wait", &["nothing", "wait.on_ns"]),
        ("select * from nowhere", &["nowhere", "--tables"]),
        ("select * from fleet.nowhere", &["nowhere"]),
        ("select 1; select 2", &["single"]),
        ("select nofunction(1)", &["nofunction"]),
        ("select global_ns(1)", &["global_ns"]),
        ("select * from subtree()", &["subtree(id)", "a number"]),
        ("select * from critical_path('one')", &["critical_path(id)"]),
        ("select * from blame(-1)", &["blame([id])"]),
        ("select * from blame(1, 2)", &["blame([id])"]),
        ("insert into wait select * from wait", &["SELECT"]),
        ("drop table wait", &["SELECT"]),
        ("create table a as select 1", &["SELECT"]),
        ("create external table a stored as csv location '/etc/passwd'", &["SELECT"]),
        ("set datafusion.execution.batch_size = 1", &["SELECT"]),
        ("select * from '/etc/passwd'", &["/etc/passwd"]),
        (deep.as_str(), &["--tables"]),
        (long.as_str(), &["1001 operators"]),
    ] {
        let out = asked.command(&[query]).output().expect("run");
        assert_refused(&out, words);
    }
    asked.assert_nothing_is_left();
}

#[test]
fn the_longest_query_is_answered() {
    let asked = Asked::small();
    let deep = format!("select count(*){} from trace", "+1".repeat(990));
    assert_eq!(asked.number(&deep), 998);
    let list: Vec<String> = (0..10_000).map(|number| format!("'{number}'")).collect();
    let long = format!("select count(*) from trace where host in ({})", list.join(","));
    assert_eq!(asked.number(&long), 0);
}

#[test]
fn nothing_is_written_by_a_query() {
    let asked = Asked::small();
    let target = asked.folder().join("copy.csv");
    let query = format!("copy wait to '{}'", target.display());
    assert_refused(&asked.command(&[&query]).output().expect("run"), &["SELECT"]);
    assert!(!target.exists());
}

#[test]
fn a_trace_that_is_none_is_refused() {
    let asked = Asked::small();
    let out = program(&asked.temporary())
        .args(["sql", "select 1", "/nonexistent"])
        .output()
        .expect("run");
    assert_refused(&out, &["/nonexistent"]);
    let twice = asked.command(&["select 1"]).arg(&asked.traces[0]).output().expect("run");
    assert_refused(&twice, &["client"]);
    let missing = program(&asked.temporary()).args(["sql", "select 1"]).output();
    assert_refused(&missing.expect("run"), &["DIR"]);
    asked.assert_nothing_is_left();
}

#[test]
fn a_damaged_file_is_refused() {
    let asked = Asked::small();
    let files = fs::read_dir(&asked.traces[1]).expect("listed").flatten();
    let path = files
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("/wait-"))
        .expect("a file");
    let good = fs::read(&path).expect("read");
    for at in [0, 30, good.len() / 2, good.len() - 20] {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        fs::write(&path, bad).expect("written");
        let out = asked.command(&["select count(*), max(on_ns) from wait"]);
        assert_refused(&{ out }.output().expect("run"), &["wait-"]);
        // What does not need the file is answered.
        assert_eq!(asked.number("select count(distinct host) from message"), 4);
    }
}

#[test]
fn memory_that_does_not_suffice_is_said() {
    let asked = Asked::small();
    let query = "select on_ns, count(*) from wait group by on_ns order by on_ns";
    let out = asked.command(&["--memory", "1", query]).output();
    assert_refused(&out.expect("run"), &["--memory"]);
    asked.assert_nothing_is_left();
}

#[test]
fn a_cluster_that_is_not_there_is_said() {
    let asked = Asked::small();
    // Port 1 of the loopback address: nobody listens.
    let words = ["--cluster", "df://127.0.0.1:1", "select count(*) from wait"];
    let out = asked.command(&words).output().expect("run");
    assert_refused(&out, &["df://127.0.0.1:1"]);
    let words = ["--cluster", "http://a", "select 1"];
    assert_refused(&asked.command(&words).output().expect("run"), &["df://"]);
    asked.assert_nothing_is_left();
}

#[cfg(feature = "cluster")]
#[test]
fn an_executor_whose_address_is_taken_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let asked = Asked::small();
    let out = program(&asked.temporary())
        .args(["serve", "executor", "--bind", &address])
        .output()
        .expect("run");
    assert_refused(&out, &[&address, "in use"]);
    asked.assert_nothing_is_left();
}
