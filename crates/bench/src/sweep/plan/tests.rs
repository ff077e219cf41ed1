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
        ("size =", "model = 'no.toml'\nsize =", &["no.toml"]),
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
