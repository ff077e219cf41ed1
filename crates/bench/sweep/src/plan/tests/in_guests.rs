//! Plans whose points run in guests.

use super::*;

#[test]
fn a_plan_in_virtual_time() {
    let plan = SweepPlan::parse(VIRTUAL, Path::new("p.toml")).expect("fine");
    let virtual_time = plan.virtual_time.as_ref().expect("there");
    assert_eq!(virtual_time.kernel, "6.1");
    assert_eq!(virtual_time.repeats, 3);
    // What differs between two commands does not make another plan of it.
    let mut other = plan.clone();
    other.set_jobs(7).expect("guests");
    let json = |plan: &SweepPlan| serde_json::json!(plan).to_string();
    assert_eq!(json(&plan), json(&other));
}

#[test]
fn arrivals_are_an_axis() {
    let plan = |options: &str| {
        let text = format!(
            "[virtual]\nmips = [1000]\n[[workload]]\nname = 'w'\nbench = 'metarates'\noptions = {{ {options} }}
             [[target]]\nname = 't'\nfs = 'ext4'"
        );
        SweepPlan::parse(&text, Path::new("p.toml"))
    };
    let both = "arrivals = ['40us', 'exponential:40us'], directories = ['one', 'own']";
    let fine = plan(&format!("rounds = 3, {both}")).expect("fine");
    assert_eq!(crate::sweep_points::points(&fine).len(), 4);
    let error = plan(both).expect_err("no rounds").to_string();
    assert!(error.contains("write rounds as well"), "{error}");
}

#[test]
fn what_guests_cannot_have_is_named() {
    for (from, to, words) in [
        ("[virtual]\nmips = [1000, 2000]", "", &["'kernel:off'", "[virtual]"][..]),
        ("[1000, 2000]", "[100, 2000]", &["virtual.mips", "16 times"]),
        ("[1000, 2000]", "[]", &["virtual.mips", "no value"]),
        ("[virtual]", "[virtual]\nprocessors = 0", &["virtual.processors = 0", "1 to 64"]),
        ("[virtual]", "[virtual]\nprocessors = 65", &["virtual.processors = 65", "1 to 64"]),
        ("threads = [4]", "threads = [4]\nprocessors = [2]", &["'create'", "virtual.processors"]),
        (
            "threads = [4]",
            "threads = [4]\nprocessors = [2, 65]",
            &["'create'", "processors = 65", "1 to 64"],
        ),
        ("threads = [4]", "threads = [4]\nrepeats = 0", &["'create'", "repeats = 0", "1 to 1000"]),
        (
            "[disk]\nsize = '64M'\n[[workload]]",
            "[stop]\nbest = true\n[disk]\nsize = '64M'\n[[workload]]\nrepeats = 9",
            &["'create'", "repeats", "stop.min"],
        ),
        ("mips = [1000, 2000]", "mips = [1000]\nrepeats = 0", &["repeats = 0"]),
        ("mips", "mip", &["p.toml:4:", "'mips'"]),
        ("'kernel:delay'", "'auto'", &["'auto'", "kernel:auto"]),
        ("'kernel:delay'", "'gate:pid'", &["'gate:pid'", "'kernel:pid'"]),
        ("'kernel:delay'", "'kernel:off+off'", &["'kernel:off'", "twice"]),
        ("'kernel:delay'", "'kernel:pid+no'", &["p.toml:2:", "`kernel:pid+no`"]),
        ("'kernel:delay'", "'kernel:dela'", &["p.toml:2:", "'kernel:delay'"]),
        ("[disk]", "[stop]\nmax = 50\n[disk]", &["stop", "virtual.repeats"]),
        (
            "mips = [1000, 2000]",
            "mips = [1000]\nrepeats = 6\n[stop]\nbest = true",
            &["virtual.repeats", "stop.min"],
        ),
        ("[virtual]", "frequency = ['as-is']\n[virtual]", &["frequency", "virtual.mips"]),
        ("size = '64M'", "size = '2G'", &["2G", "1G"]),
        ("mkfs = '-J size=4'", "disk = { size = '2G' }", &["2G", "1G"]),
        ("fs = 'ext4'", "directory = '/'", &["mkfs and mount go with fs"]),
        ("delay_us", "delay_u", &["'delay_u'", "'delay_us'"]),
        ("delay_us = 500", "delay_us = 60000", &["delay_us", "60000", "50000"]),
        (
            "[virtual]",
            "[virtual]\ninstruction = '128ns'",
            &["virtual.instruction", "128 times", "0.01 to 100"],
        ),
        ("target = ['ext4']", "target = ['ext5']", &["'ext5'", "'ext4'"]),
        ("-J size=4", "-E stride=2", &["-E"]),
        ("bench = 'metarates'", "command = ['x']", &["create"]),
        ("[2, 4]", "[2, 2]", &["rounds", "twice"]),
        ("[disk]", "[stop]\nstolen = 0.02\n[disk]", &["stop.stolen", "virtual"]),
        ("[virtual]", "poll-idle = true\n[virtual]", &["poll-idle", "virtual"]),
    ] {
        let said = refusal_of(VIRTUAL, from, to);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn jobs_are_of_guests() {
    let mut plan = SweepPlan::parse(WHOLE, Path::new("p.toml")).expect("fine");
    let said = plan.set_jobs(2).expect_err("refused").to_string();
    assert!(said.contains("--jobs") && said.contains("[virtual]"), "{said}");
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
fn workload_files_are_run_at_speeds_that_stretch_nothing() {
    SweepPlan::parse(MODELLED, Path::new("p.toml")).expect("fine");
    let fixed = MODELLED.replace("'ssd'", "'fixed'");
    SweepPlan::parse(&fixed, Path::new("p.toml")).expect("fine");
    // A model's own times are stretched, and the module goes with it.
    let built_in = MODELLED
        .replace("filebench = 'webserver'", "bench = 'metarates'")
        .replace("fs = 'reiserfs'", "fs = 'ext4'\npolicy = ['kernel:delay']")
        .replace("[500]", "[1000, 2060]");
    SweepPlan::parse(&built_in, Path::new("p.toml")).expect("fine");
    for (whole, from, to, words) in [
        (MODELLED, "[500]", "[600]", &["[600]", "file 'web'", "125"][..]),
        (MODELLED, "[500]", "[500, 1000]", &["[500, 1000]", "write one of"]),
        (&fixed, "[500]", "[600]", &["[600]", "file 'web'"]),
        (MODELLED, "name = 'web'", "name = 'web'\nmips = [250]", &["virtual.mips", "stretched"]),
        (MODELLED, "name = 'web'", "name = 'web'\nmemory = '1M'", &["'web'", "memory = 1M", "16M"]),
        (
            &fixed,
            "name = 'web'",
            "name = 'web'\nmemory = '60M'",
            &["'web'", "memory", "disk.model"],
        ),
        (MODELLED, "'ssd'", "'ssd'\nsize = '5G'", &["5G", "ssd", "4G"]),
        (MODELLED, "[500]", "[500]\nkernel = '6.13'", &["'old'", "6.13", "no reiserfs"]),
        (MODELLED, "filebench = 'webserver'", "command = ['x']", &["'web'", "bench or filebench"]),
    ] {
        let said = refusal_of(whole, from, to);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
