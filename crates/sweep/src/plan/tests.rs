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
        (
            "min = 6",
            "min = 6\nstolen = 2",
            &["stop.stolen = 2", "0.02"],
        ),
        ("threads", "poll-idel = true\nthreads", &["'poll-idle'"]),
        ("size = '64M'", "size = '4M'", &["ext4", "16M", "4M"]),
        ("'1ms'", "'1 mile'", &["p.toml:10:", "'1 mile'", "6ms"]),
        ("'64M'", "'64Q'", &["p.toml:9:", "'64Q'", "512M"]),
        (
            "threads",
            "settle = 'soon'\nthreads",
            &["p.toml:2:", "'soon'"],
        ),
        ("[1, 4]", "[4, 4]", &["twice"]),
        ("[1, 4]", "[]", &["no value"]),
        ("fs = 'ext4'", "fs = 'vfat'", &["vfat", "xfs"]),
        (
            "fs = 'ext4'",
            "fs = 'ext4'\ndisk = { size = '4M' }",
            &["'ext4'", "16M", "4M"],
        ),
        (
            "fs = 'ext4'",
            "fs = 'ext4'\ndisk = { flus = '1ms' }",
            &["p.toml:18:", "'flush'"],
        ),
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
        (
            "fs = 'ext4'",
            "device = '/dev/sda'\nerase = '/dev/sda'",
            &["/dev/sda", "goes with fs"],
        ),
        (
            "fs = 'ext4'",
            "fs = 'ext4'\ndevice = 'sda'\nerase = 'sda'",
            &["sda", "absolute"],
        ),
        (
            "fs = 'ext4'",
            "fs = 'ext4'\noverwrite = true",
            &["go with device"],
        ),
        (
            "threads",
            "scheduler = ['kiber']\nthreads",
            &["p.toml:2:", "`kiber`", "'kyber'"],
        ),
        (
            "threads",
            "scheduler = ['bfq', 'bfq']\nthreads",
            &["bfq", "twice"],
        ),
        ("[disk]", "[disk]\nmodel = 'no.toml'", &["no.toml"]),
        (
            "name = 'create'",
            "name = 'create'\nmemory = '60M'",
            &["memory", "[virtual]"],
        ),
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
fn a_target_has_a_disk_of_its_own() {
    let text = format!(
        "{WHOLE}[[target]]\nname = 'fast'\nfs = 'xfs'\ndisk = {{ size = '300M', flush = '20us' }}\n"
    );
    let plan = Plan::parse(&text, Path::new("p.toml")).expect("fine");
    let words = |at: usize| plan.disk_of(&plan.target[at]).words().join(" ");
    assert_eq!(words(0), "--model fixed --size 64M --flush 1ms");
    assert_eq!(words(1), "--model fixed --size 300M --flush 20us");
    // A result of before has no such key.
    assert!(
        !serde_json::json!(plan.target[0])
            .to_string()
            .contains("disk")
    );
}

#[test]
fn a_plan_in_virtual_time() {
    let plan = Plan::parse(VIRTUAL, Path::new("p.toml")).expect("fine");
    let virtual_time = plan.virtual_time.as_ref().expect("there");
    assert_eq!(virtual_time.kernel, "6.1");
    assert_eq!(virtual_time.repeats, 3);
    // What differs between two commands does not make another plan of it.
    let mut other = plan.clone();
    other.set_jobs(7).expect("guests");
    let json = |plan: &Plan| serde_json::json!(plan).to_string();
    assert_eq!(json(&plan), json(&other));
}

#[test]
fn what_guests_cannot_have_is_named() {
    for (from, to, words) in [
        (
            "[virtual]\nmips = [1000, 2000]",
            "",
            &["'kernel:off'", "[virtual]"][..],
        ),
        ("[1000, 2000]", "[100, 2000]", &["virtual.mips", "16 times"]),
        ("[1000, 2000]", "[]", &["virtual.mips", "no value"]),
        (
            "mips = [1000, 2000]",
            "mips = [1000]\nrepeats = 0",
            &["repeats = 0"],
        ),
        ("mips", "mip", &["p.toml:4:", "'mips'"]),
        ("'kernel:delay'", "'auto'", &["'auto'", "kernel:auto"]),
        (
            "'kernel:delay'",
            "'gate:pid'",
            &["'gate:pid'", "'kernel:pid'"],
        ),
        (
            "'kernel:delay'",
            "'kernel:off+off'",
            &["'kernel:off'", "twice"],
        ),
        (
            "'kernel:delay'",
            "'kernel:pid+no'",
            &["p.toml:2:", "`kernel:pid+no`"],
        ),
        (
            "'kernel:delay'",
            "'kernel:dela'",
            &["p.toml:2:", "'kernel:delay'"],
        ),
        (
            "[disk]",
            "[stop]\nmax = 50\n[disk]",
            &["stop", "virtual.repeats"],
        ),
        (
            "mips = [1000, 2000]",
            "mips = [1000]\nrepeats = 6\n[stop]\nbest = true",
            &["virtual.repeats", "stop.min"],
        ),
        (
            "[virtual]",
            "frequency = ['as-is']\n[virtual]",
            &["frequency", "virtual.mips"],
        ),
        ("size = '64M'", "size = '2G'", &["2G", "1G"]),
        (
            "mkfs = '-J size=4'",
            "disk = { size = '2G' }",
            &["2G", "1G"],
        ),
        (
            "fs = 'ext4'",
            "directory = '/'",
            &["mkfs and mount go with fs"],
        ),
        ("size = '64M'", "model = 'hdd'", &["'kernel:", "fixed"]),
        ("delay_us", "delay_u", &["'delay_u'", "'delay_us'"]),
        (
            "delay_us = 500",
            "delay_us = 30000",
            &["delay_us", "60000", "50000"],
        ),
        (
            "target = ['ext4']",
            "target = ['ext5']",
            &["'ext5'", "'ext4'"],
        ),
        ("-J size=4", "-E stride=2", &["-E"]),
        ("bench = 'metarates'", "command = ['x']", &["create"]),
        ("[2, 4]", "[2, 2]", &["rounds", "twice"]),
        (
            "[disk]",
            "[stop]\nstolen = 0.02\n[disk]",
            &["stop.stolen", "virtual"],
        ),
        (
            "[virtual]",
            "poll-idle = true\n[virtual]",
            &["poll-idle", "virtual"],
        ),
    ] {
        let said = refusal_of(VIRTUAL, from, to);
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
            "filebench = 'webserver'\noptions = { cold = 1 }",
            &["cold = 1", "true or false"],
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
fn no_fsync_is_of_those_that_heed_it() {
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let text = WHOLE.replace("fs = 'ext4'", "fs = 'ext4'\nno-fsync = true");
    Plan::parse(&text, Path::new("p.toml")).expect("fine");
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
fn jobs_are_of_guests() {
    let mut plan = Plan::parse(WHOLE, Path::new("p.toml")).expect("fine");
    let said = plan.set_jobs(2).expect_err("refused").to_string();
    assert!(
        said.contains("--jobs") && said.contains("[virtual]"),
        "{said}"
    );
}

#[test]
fn schedulers_need_disks_of_their_own() {
    let text = format!("scheduler = ['bfq']{WHOLE}");
    Plan::parse(&text, Path::new("p.toml")).expect("fine");
    let text = format!("{text}[[target]]\nname = 'd'\ndirectory = '/'\n");
    let error = Plan::parse(&text, Path::new("p.toml")).expect_err("refused");
    assert!(error.to_string().contains("'d' is a directory"), "{error}");
}

#[test]
fn a_model_file_is_beside_the_plan_and_part_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.toml");
    let model = folder.path().join("slow.toml");
    let text = WHOLE.replace("flush = '1ms'", "model = 'slow.toml'");
    fs::write(&plan, text).expect("written");
    let read = || Plan::read(&plan);
    assert!(read().is_err());
    fs::write(&model, "model = 'hdd'\nno_such_key = 1\n").expect("written");
    let said = read().expect_err("refused").to_string();
    assert!(
        said.contains("slow.toml") && said.lines().count() == 1,
        "{said}"
    );
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
    let plan = Plan::parse(&best, Path::new("p.toml")).expect("fine");
    assert!(plan.stop.best);
    let bench = "bench = 'metarates'\noptions = { seconds = 0.5, file-size = '1k' }";
    let timed = best.replace(bench, "command = ['true']");
    let error = Plan::parse(&timed, Path::new("p.toml")).expect_err("refused");
    assert!(error.to_string().contains("ends in /s"), "{error}");
}

#[test]
fn a_plan_is_read_back_from_its_results() {
    let filebench = WHOLE
        .replace("bench = 'metarates'", "filebench = 'varmail'")
        .replace(
            "{ seconds = 0.5, file-size = '1k' }",
            "{ set = ['nthreads={threads}'] }",
        );
    for text in [WHOLE, &filebench, VIRTUAL] {
        let plan = Plan::parse(text, Path::new("p.toml")).expect("fine");
        let mut head = plan.head().expect("readable");
        let back: Plan = serde_json::from_value(head["plan"].take()).expect("a plan");
        assert_eq!(
            back.head().expect("readable"),
            plan.head().expect("readable")
        );
    }
}

#[test]
fn a_plan_is_written_as_in_earlier_results() {
    let text =
        "[[workload]]\nname = 'w'\nbench = 'metarates'\n[[target]]\nname = 't'\nfs = 'ext4'\n";
    let plan = Plan::parse(text, Path::new("p.toml")).expect("fine");
    assert_eq!(
        serde_json::json!(plan).to_string(),
        r#"{"disk":{"flush":null,"model":"fixed","read":null,"size":"1G","write":null},"policy":["off"],"seed":1,"#
            .to_owned()
            + r#""settle":"500ms","stop":{"goal":0.05,"max":40,"min":10},"target":[{"directory":null,"fs":"ext4","#
            + r#""mkfs":"","mount":"","name":"t"}],"threads":[1],"workload":[{"bench":"metarates","command":null,"#
            + r#""figure":null,"name":"w","options":{}}]}"#
    );
}

const MODELLED: &str = "
[virtual]
mips = [500]
[disk]
model = 'ssd'
[[workload]]
name = 'web'
filebench = 'webserver'
[[target]]
name = 'old'
fs = 'reiserfs'
[[target]]
name = 'flash'
fs = 'f2fs'
";

#[test]
fn models_and_workload_files_are_run_at_speeds_that_stretch_nothing() {
    Plan::parse(MODELLED, Path::new("p.toml")).expect("fine");
    let fixed = MODELLED.replace("'ssd'", "'fixed'");
    Plan::parse(&fixed, Path::new("p.toml")).expect("fine");
    for (whole, from, to, words) in [
        (MODELLED, "[500]", "[600]", &["[600]", "\"ssd\"", "125"][..]),
        (
            MODELLED,
            "[500]",
            "[500, 1000]",
            &["[500, 1000]", "write one of"],
        ),
        (&fixed, "[500]", "[600]", &["[600]", "file 'web'"]),
        (
            MODELLED,
            "name = 'web'",
            "name = 'web'\nmips = [250]",
            &["virtual.mips", "stretched"],
        ),
        (
            MODELLED,
            "name = 'web'",
            "name = 'web'\nmemory = '1M'",
            &["'web'", "memory = 1M", "16M"],
        ),
        (
            &fixed,
            "name = 'web'",
            "name = 'web'\nmemory = '60M'",
            &["'web'", "memory", "disk.model"],
        ),
        (
            MODELLED,
            "'ssd'",
            "'ssd'\nsize = '5G'",
            &["5G", "ssd", "4G"],
        ),
        (
            MODELLED,
            "[500]",
            "[500]\nkernel = '6.13'",
            &["'old'", "6.13", "no reiserfs"],
        ),
        (
            MODELLED,
            "[virtual]",
            "policy = ['kernel:auto']\n[virtual]",
            &["'kernel:auto'", "fixed"],
        ),
        (
            MODELLED,
            "filebench = 'webserver'",
            "command = ['x']",
            &["'web'", "bench or filebench"],
        ),
    ] {
        let said = refusal_of(whole, from, to);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
