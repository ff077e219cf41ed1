//! Plans that are accepted, and messages about others.

use super::*;

mod in_guests;

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

const VIRTUAL: &str = "
policy = ['kernel:off', 'kernel:delay']
[virtual]
mips = [1000, 2000]
[disk]
size = '64M'
[[workload]]
name = 'create'
bench = 'metarates'
threads = [4]
options = { rounds = [2, 4] }
settings = { delay_us = 500 }
target = ['ext4']
[[target]]
name = 'ext4'
fs = 'ext4'
mkfs = '-J size=4'
";

fn refusal(from: &str, to: &str) -> String {
    refusal_of(WHOLE, from, to)
}

fn refusal_of(whole: &str, from: &str, to: &str) -> String {
    let text = whole.replace(from, to);
    assert_ne!(text, whole);
    let error = SweepPlan::parse(&text, Path::new("p.toml")).expect_err("refused");
    let said = error.to_string();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_whole_plan() {
    let plan = SweepPlan::parse(WHOLE, Path::new("p.toml")).expect("fine");
    assert_eq!(plan.threads, [1, 4]);
    assert_eq!(plan.workload[0].bench, Some(crate::BuiltinWorkload::Metarates));
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, words) in [
        ("threads", "thread", &["p.toml:2:", "`thread`", "'threads'"][..]),
        ("goal", "gaol", &["p.toml:5:", "'goal'"]),
        ("metarates", "metarate", &["p.toml:13:", "'metarates'"]),
        ("file-size", "filesize", &["'filesize'", "'file-size'"]),
        ("'1k'", "'1x'", &["file-size", "1x"]),
        ("0.5", "-1", &["seconds"]),
        ("min = 6", "min = 5", &["stop.min = 5"]),
        ("min = 6", "min = 6\nstolen = 2", &["stop.stolen = 2", "0.02"]),
        ("threads", "poll-idel = true\nthreads", &["'poll-idle'"]),
        ("size = '64M'", "size = '4M'", &["ext4", "16M", "4M"]),
        ("'1ms'", "'1 mile'", &["p.toml:10:", "'1 mile'", "6ms"]),
        ("'64M'", "'64Q'", &["p.toml:9:", "'64Q'", "512M"]),
        ("threads", "settle = 'soon'\nthreads", &["p.toml:2:", "'soon'"]),
        ("[1, 4]", "[4, 4]", &["twice"]),
        ("[1, 4]", "[]", &["no value"]),
        ("fs = 'ext4'", "fs = 'vfat'", &["vfat", "xfs"]),
        ("fs = 'ext4'", "fs = 'ext4'\ndisk = { size = '4M' }", &["'ext4'", "16M", "4M"]),
        ("fs = 'ext4'", "fs = 'ext4'\ndisk = { flus = '1ms' }", &["p.toml:18:", "'flush'"]),
        (
            "fs = 'ext4'",
            "directory = '/'\ndisk = { flush = '1ms' }",
            &["target 'ext4'", "disk goes with fs"],
        ),
        (
            "flush = '1ms'",
            "model = 'ssd'\n[[target]]\nname = 'own'\nfs = 'ext4'\ndisk = { flush = '1ms' }",
            &["target 'own'", "model fixed"],
        ),
        (
            "fs = 'ext4'",
            "fs = 'ext4'\ndevice = '/dev/sda'",
            &["/dev/sda", "formatted", "erase = \"/dev/sda\""],
        ),
        (
            "fs = 'ext4'",
            "fs = 'ext4'\ndevice = '/dev/sda'\nerase = '/dev/sdb'",
            &["/dev/sda", "/dev/sdb", "twice"],
        ),
        ("fs = 'ext4'", "device = '/dev/sda'\nerase = '/dev/sda'", &["/dev/sda", "goes with fs"]),
        ("fs = 'ext4'", "fs = 'ext4'\ndevice = 'sda'\nerase = 'sda'", &["sda", "absolute"]),
        ("fs = 'ext4'", "fs = 'ext4'\noverwrite = true", &["go with device"]),
        ("threads", "scheduler = ['kiber']\nthreads", &["p.toml:2:", "`kiber`", "'kyber'"]),
        ("threads", "scheduler = ['bfq', 'bfq']\nthreads", &["bfq", "twice"]),
        ("[disk]", "[disk]\nmodel = 'no.toml'", &["no.toml"]),
        ("name = 'create'", "name = 'create'\nmemory = '60M'", &["memory", "[virtual]"]),
        ("fs = 'ext4'", "directory = '/no/such'", &["/no/such"]),
        ("'auto'", "'gate:dela'", &["p.toml:3:", "'gate:delay'"]),
        (
            "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }",
            "bench = 'commit'\noptions = { processes = true }",
            &["commit has no option 'processes'", "rounds"],
        ),
        (
            "seconds = 0.5",
            "slow-factor = 'x', slow-clients = 1",
            &["slow-factor", "write a number"],
        ),
        ("bench = 'metarates'", "command = ['x']", &["without options"]),
    ] {
        let said = refusal(from, to);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn a_target_has_a_disk_of_its_own() {
    let text = format!(
        "{WHOLE}[[target]]\nname = 'fast'\nfs = 'xfs'\ndisk = {{ size = '300M', flush = '20us' }}\n"
    );
    let plan = SweepPlan::parse(&text, Path::new("p.toml")).expect("fine");
    let words = |at: usize| plan.disk_of(&plan.target[at]).words().join(" ");
    assert_eq!(words(0), "--model fixed --size 64M --flush 1ms");
    assert_eq!(words(1), "--model fixed --size 300M --flush 20us");
    // A result of before has no such key.
    assert!(!serde_json::json!(plan.target[0]).to_string().contains("disk"));
}

#[test]
fn a_workload_file_is_read_and_checked() {
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let file = |text: &str| WHOLE.replace(bench, text);
    let heeding =
        file("filebench = 'webserver'\noptions = { seconds = 1, set = ['nthreads={threads}'] }");
    let plan = SweepPlan::parse(&heeding, Path::new("p.toml")).expect("fine");
    assert!(plan.workload[0].text.contains("define fileset"));
    for (text, words) in [
        ("filebench = 'webservr'", &["webservr"][..]),
        ("filebench = 'webserver'", &["'create'", "nthreads={threads}"]),
        ("filebench = 'webserver'\noptions = { cold = 1 }", &["cold = 1", "true or false"]),
        ("filebench = 'webserver'\noptions = { second = 1 }", &["'second'", "'seconds'"]),
        (
            "filebench = 'webserver'\noptions = { set = ['nthreads={threads}', 'nfiles'] }",
            &["nfiles", "name=value"],
        ),
        ("filebench = 'webserver'\nbench = 'oltp'", &["without bench"]),
    ] {
        let error = SweepPlan::parse(&file(text), Path::new("p.toml")).expect_err("refused");
        let said = error.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn no_fsync_is_of_those_that_heed_it() {
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let text = WHOLE.replace("fs = 'ext4'", "fs = 'ext4'\nno-fsync = true");
    SweepPlan::parse(&text, Path::new("p.toml")).expect("fine");
    for other in [
        "bench = 'commit'",
        "command = ['true']",
        "filebench = 'varmail'\noptions = { set = ['nthreads={threads}'] }",
    ] {
        let said = refusal_of(&text, bench, other);
        assert!(said.contains("'ext4' has no-fsync"), "{said}");
    }
}

#[test]
fn schedulers_need_disks_of_their_own() {
    let text = format!("scheduler = ['bfq']{WHOLE}");
    SweepPlan::parse(&text, Path::new("p.toml")).expect("fine");
    let text = format!("{text}[[target]]\nname = 'd'\ndirectory = '/'\n");
    let error = SweepPlan::parse(&text, Path::new("p.toml")).expect_err("refused");
    assert!(error.to_string().contains("'d' is a directory"), "{error}");
}

#[test]
fn a_model_file_is_beside_the_plan_and_part_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.toml");
    let model = folder.path().join("slow.toml");
    let text = WHOLE.replace("flush = '1ms'", "model = 'slow.toml'");
    fs::write(&plan, text).expect("written");
    let read = || SweepPlan::read(&plan);
    assert!(read().is_err());
    fs::write(&model, "model = 'hdd'\nno_such_key = 1\n").expect("written");
    let said = read().expect_err("refused").to_string();
    assert!(said.contains("slow.toml") && said.lines().count() == 1, "{said}");
    fs::write(&model, "model = 'fixed'\nflush_ns = 5\n").expect("written");
    let first = read().expect("fine");
    let words = first.disk.words();
    assert_eq!(Path::new(&words[1]), model);
    let head = first.head().expect("readable");
    assert_eq!(head["plan"]["disk"]["model"], "slow.toml");
    fs::write(&model, "model = 'fixed'\nflush_ns = 6\n").expect("written");
    assert_ne!(read().expect("fine").head().expect("readable"), head);
}

#[test]
fn only_the_best_needs_three_rounds_and_a_rate() {
    let best = WHOLE.replace("min = 6", "min = 3\nbest = true");
    let plan = SweepPlan::parse(&best, Path::new("p.toml")).expect("fine");
    assert!(plan.stop.best);
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let timed = best.replace(bench, "command = ['true']");
    let error = SweepPlan::parse(&timed, Path::new("p.toml")).expect_err("refused");
    assert!(error.to_string().contains("ends in /s"), "{error}");
}

#[test]
fn a_plan_is_read_back_from_its_results() {
    let filebench = WHOLE
        .replace("bench = 'metarates'", "filebench = 'varmail'")
        .replace("{ seconds = 0.5, file-size = '1k' }", "{ set = ['nthreads={threads}'] }");
    for text in [WHOLE, &filebench, VIRTUAL] {
        let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
        let mut head = plan.head().expect("readable");
        let back: SweepPlan = serde_json::from_value(head["plan"].take()).expect("a plan");
        assert_eq!(back.head().expect("readable"), plan.head().expect("readable"));
    }
}

#[test]
fn a_plan_is_written_as_in_earlier_results() {
    let text =
        "[[workload]]\nname = 'w'\nbench = 'metarates'\n[[target]]\nname = 't'\nfs = 'ext4'\n";
    let plan = SweepPlan::parse(text, Path::new("p.toml")).expect("fine");
    assert_eq!(
        serde_json::json!(plan).to_string(),
        r#"{"disk":{"flush":null,"model":"fixed","read":null,"size":"1G","write":null},"policy":["off"],"seed":1,"#
            .to_owned()
            + r#""settle":"500ms","stop":{"goal":0.05,"max":40,"min":10},"target":[{"directory":null,"fs":"ext4","#
            + r#""mkfs":"","mount":"","name":"t"}],"threads":[1],"workload":[{"bench":"metarates","command":null,"#
            + r#""figure":null,"name":"w","options":{}}]}"#
    );
}
