//! Plans that are taken, and what is said of others.

use super::*;

const WHOLE: &str = "
threads = [1, 4]
policy = ['off', 'auto']
[stop]
goal = 0.1
min = 6
max = 12
[disk]
size = '64M'
flush = '1ms'
[[workload]]
name = 'create'
bench = 'metarates'
options = { seconds = 0.5, file-size = '1k' }
[[target]]
name = 'ext4'
fs = 'ext4'
";

fn refusal(from: &str, to: &str) -> String {
    let text = WHOLE.replace(from, to);
    assert_ne!(text, WHOLE);
    let error = Plan::parse(&text, Path::new("p.toml")).expect_err("refused");
    let said = error.to_string();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_whole_plan() {
    let plan = Plan::parse(WHOLE, Path::new("p.toml")).expect("fine");
    assert_eq!(plan.threads, [1, 4]);
    assert_eq!(plan.workload[0].bench, Some(Bench::Metarates));
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, words) in [
        (
            "threads",
            "thread",
            &["p.toml:2:", "`thread`", "'threads'"][..],
        ),
        ("goal", "gaol", &["p.toml:5:", "'goal'"]),
        ("metarates", "metarate", &["p.toml:13:", "'metarates'"]),
        ("file-size", "filesize", &["'filesize'", "'file-size'"]),
        ("'1k'", "'1x'", &["file-size", "1x"]),
        ("0.5", "-1", &["seconds"]),
        ("min = 6", "min = 5", &["stop.min = 5"]),
        ("size = '64M'", "size = '4M'", &["ext4", "16M", "4M"]),
        ("'1ms'", "'1 mile'", &["1 mile"]),
        ("[1, 4]", "[4, 4]", &["twice"]),
        ("[1, 4]", "[]", &["no value"]),
        ("fs = 'ext4'", "fs = 'vfat'", &["vfat", "xfs"]),
        (
            "fs = 'ext4'",
            "device = '/dev/sda'",
            &["/dev/sda", "emulated"],
        ),
        ("fs = 'ext4'", "directory = '/no/such'", &["/no/such"]),
        (
            "bench = 'metarates'",
            "command = ['x']",
            &["without options"],
        ),
    ] {
        let said = refusal(from, to);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn a_workload_file_is_read_and_checked() {
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let file = |text: &str| WHOLE.replace(bench, text);
    let heeding =
        file("filebench = 'webserver'\noptions = { seconds = 1, set = ['nthreads={threads}'] }");
    let plan = Plan::parse(&heeding, Path::new("p.toml")).expect("fine");
    assert!(plan.workload[0].text.contains("define fileset"));
    for (text, words) in [
        ("filebench = 'webservr'", &["webservr"][..]),
        (
            "filebench = 'webserver'",
            &["'create'", "nthreads={threads}"],
        ),
        (
            "filebench = 'webserver'\noptions = { second = 1 }",
            &["'second'", "'seconds'"],
        ),
        (
            "filebench = 'webserver'\noptions = { set = ['nthreads={threads}', 'nfiles'] }",
            &["nfiles", "name=value"],
        ),
        (
            "filebench = 'webserver'\nbench = 'oltp'",
            &["without bench"],
        ),
    ] {
        let error = Plan::parse(&file(text), Path::new("p.toml")).expect_err("refused");
        let said = error.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn only_the_best_needs_three_rounds_and_a_rate() {
    let best = WHOLE.replace("min = 6", "min = 3\nbest = true");
    let plan = Plan::parse(&best, Path::new("p.toml")).expect("fine");
    assert!(plan.stop.best);
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let timed = best.replace(bench, "command = ['true']");
    let error = Plan::parse(&timed, Path::new("p.toml")).expect_err("refused");
    assert!(error.to_string().contains("ends in /s"), "{error}");
}
