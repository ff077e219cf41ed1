//! Settings on a tree that stands for a machine: all or none, leases, and who batches where.

mod fake_machine;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use fake_machine::FakeMachine;
use luc_module::level::{EffectiveLevel, ModuleRun, RequestedLevel, plan};
use luc_module::setting_leases::{LeaseHolder, SettingLeases};
use luc_module::{Error, JournalSettings, LucModule, MachinePaths, set};

fn machine(fake: &FakeMachine) -> MachinePaths {
    MachinePaths::at(fake.root().into())
}

fn settings(words: &[&str]) -> JournalSettings {
    JournalSettings::parse(words.iter().copied()).expect("settings")
}

fn watcher(_: &str) -> Command {
    Command::new("true")
}

fn holder(fake: &FakeMachine) -> LeaseHolder {
    LeaseHolder::new(&SettingLeases::of(&machine(fake)), watcher).expect("holder")
}

fn journal(fake: &FakeMachine, name: &str) -> luc_module::ModuleJournal {
    let module = LucModule::open(&machine(fake)).expect("module");
    module.journal(name).expect("journal")
}

#[test]
fn a_setting_that_is_not_taken_takes_the_others_back() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    fake.mount("b-8", "7:1");
    fake.refuse("b-8", "copy_out");
    let journals = LucModule::open(&machine(&fake)).unwrap().journals().unwrap();
    let wanted = settings(&["policy=auto", "copy_out=auto", "delay_us=500"]);
    let error = set(&machine(&fake), &journals, &wanted).unwrap_err().to_string();
    assert!(error.contains("b-8") && error.contains("copy_out=auto"), "{error}");
    for name in ["a-8", "b-8"] {
        assert_eq!(fake.read(name, "delay_us"), "1000", "{name}");
    }
    assert_eq!(fake.read("a-8", "policy"), "off");
}

#[test]
fn another_interface_is_refused() {
    let fake = FakeMachine::new();
    fake.write("/sys/kernel/luc/interface", "2\n");
    let error = LucModule::open(&machine(&fake)).unwrap_err().to_string();
    assert!(error.contains("interface 2") && error.contains("knows 1"), "{error}");
    // Whoever has a choice goes on without the module, and says so.
    let plan =
        plan(&machine(&fake), RequestedLevel::Auto, || Ok(JournalSettings::default())).unwrap();
    assert_eq!(plan.level, EffectiveLevel::Gate);
    assert!(plan.note.is_some());
}

#[test]
fn places_are_paths_devices_and_names() {
    let fake = FakeMachine::new();
    fake.mount("disk-8", &fake.own_device());
    fake.mount("cciss!c0d0-8", "104:0");
    let module = LucModule::open(&machine(&fake)).unwrap();
    let path = fake.root().to_str().unwrap();
    for (place, name) in [
        (path, "disk-8"),
        ("disk-8", "disk-8"),
        ("cciss!c0d0-8", "cciss!c0d0-8"),
        ("104:0", "cciss!c0d0-8"),
    ] {
        assert_eq!(module.find(place).unwrap().name, name, "{place}");
    }
    assert!(matches!(module.find("/no/such"), Err(Error::NoSuchPlace { .. })));
    assert!(matches!(module.find("../no-such-8"), Err(Error::NoSuchPlace { .. })));
    assert!(matches!(module.find("1:2"), Err(Error::NoJournalThere { .. })));
}

#[test]
fn holders_in_any_order_leave_what_was_before() {
    for first_ends_first in [true, false] {
        let fake = FakeMachine::new();
        fake.mount("a-8", "7:0");
        let journal = journal(&fake, "a-8");
        let (one, two) = (holder(&fake), holder(&fake));
        one.lend(&journal, &settings(&["policy=auto", "copy_out=auto"])).unwrap();
        two.lend(&journal, &settings(&["policy=pid", "set_point=8"])).unwrap();
        let now = || ["policy", "copy_out", "set_point"].map(|name| fake.read("a-8", name));
        assert_eq!(now(), ["pid", "auto", "8"]);
        if first_ends_first {
            one.end().unwrap();
            assert_eq!(now(), ["pid", "off", "8"]);
            two.end().unwrap();
        } else {
            two.end().unwrap();
            assert_eq!(now(), ["auto", "auto", "0"]);
            one.end().unwrap();
        }
        assert_eq!(now(), ["off", "off", "0"]);
        assert!(!fake.path("/run/luc/kernel/record.json").exists());
        let holders = fs::read_dir(fake.path("/run/luc/kernel/holders")).unwrap();
        assert_eq!(holders.count(), 0);
    }
}

#[test]
fn what_somebody_else_sets_stays() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    let journal = journal(&fake, "a-8");
    let lender = holder(&fake);
    lender.lend(&journal, &settings(&["policy=auto", "copy_out=auto"])).unwrap();
    // By `luc kernel set`, and past it.
    set(&machine(&fake), &[journal], &settings(&["policy=delay"])).unwrap();
    fake.write("/sys/kernel/luc/a-8/copy_out", "heuristic\n");
    lender.end().unwrap();
    assert_eq!(fake.read("a-8", "policy"), "delay");
    assert_eq!(fake.read("a-8", "copy_out"), "heuristic");
}

#[test]
fn a_journal_of_the_same_name_is_another_one() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    let lender = holder(&fake);
    lender.lend(&journal(&fake, "a-8"), &settings(&["policy=auto"])).unwrap();
    let dir = fake.path("/sys/kernel/luc/a-8");
    // Kept, so that the new directory cannot get its number.
    fs::rename(&dir, fake.path("/unmounted")).unwrap();
    fake.mount("a-8", "7:0");
    fake.write("/sys/kernel/luc/a-8/policy", "auto\n");
    lender.end().unwrap();
    assert_eq!(fake.read("a-8", "policy"), "auto");
}

#[test]
fn what_is_not_taken_is_not_lent() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    let journal = journal(&fake, "a-8");
    fake.refuse("a-8", "set_point");
    let lender = holder(&fake);
    let refused = lender.lend(&journal, &settings(&["policy=pid", "set_point=8"]));
    assert!(matches!(refused, Err(Error::NotTaken { .. })), "{refused:?}");
    assert_eq!(fake.read("a-8", "policy"), "off");
}

#[test]
fn a_holder_that_is_gone_is_found_out() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    let lender = holder(&fake);
    lender.lend(&journal(&fake, "a-8"), &settings(&["policy=auto"])).unwrap();
    let leases = SettingLeases::of(&machine(&fake));
    assert_eq!(leases.holders().len(), 1);
    assert_eq!(leases.reap().unwrap(), 0);
    assert_eq!(fake.read("a-8", "policy"), "auto");
    // As if it had been killed with its watcher: its file is there, and nobody locks it.
    let record = fs::read(fake.path("/run/luc/kernel/record.json")).unwrap();
    lender.end().unwrap();
    fake.write("/sys/kernel/luc/a-8/policy", "auto\n");
    fs::write(fake.path("/run/luc/kernel/record.json"), record).unwrap();
    assert!(leases.holders().is_empty());
    assert_eq!(leases.reap().unwrap(), 1);
    assert_eq!(leases.reap().unwrap(), 0);
    assert_eq!(fake.read("a-8", "policy"), "off");
}

#[test]
fn each_journal_has_one_batcher() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    fake.mount("b-8", "7:1");
    let machine = machine(&fake);
    let wishes = || Ok(settings(&["policy=auto", "copy_out=auto"]));
    let names = |plan: luc_module::level::LevelPlan| {
        let devices = plan.count_only.iter();
        (plan.level, devices.map(ToString::to_string).collect::<Vec<_>>())
    };
    for (asked, used) in [
        (RequestedLevel::Auto, EffectiveLevel::Both),
        (RequestedLevel::Both, EffectiveLevel::Both),
        (RequestedLevel::Kernel, EffectiveLevel::Kernel),
    ] {
        let expected = vec!["7:0".to_owned(), "7:1".to_owned()];
        assert_eq!(names(plan(&machine, asked, wishes).unwrap()), (used, expected));
    }
    // The gate alone: the module stops batching where the command goes, and nowhere else.
    fake.write("/sys/kernel/luc/a-8/policy", "auto\n");
    fake.write("/sys/kernel/luc/b-8/policy", "auto\n");
    let gate = plan(&machine, RequestedLevel::Gate, wishes).unwrap();
    assert_eq!((gate.level, gate.count_only.len()), (EffectiveLevel::Gate, 0));
    let mut session = ModuleRun::new(&machine, gate, &watcher);
    session.uses("7:0".parse().unwrap());
    assert_eq!(fake.read("a-8", "policy"), "off");
    assert_eq!(fake.read("b-8", "policy"), "auto");
    // Another run that may choose leaves that journal to the gate.
    assert_eq!(
        names(plan(&machine, RequestedLevel::Auto, wishes).unwrap()),
        (EffectiveLevel::Both, vec!["7:1".to_owned()])
    );
    let (uses, failures) = session.end();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(uses.len(), 1);
    assert_eq!(fake.read("a-8", "policy"), "auto");
}

#[test]
fn a_session_counts_from_the_first_use() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    let machine = machine(&fake);
    let wishes = || Ok(settings(&["policy=auto", "copy_out=auto"]));
    let plan = plan(&machine, RequestedLevel::Kernel, wishes).unwrap();
    let mut session = ModuleRun::new(&machine, plan, &watcher);
    session.uses("7:0".parse().unwrap());
    session.uses("7:5".parse().unwrap());
    assert_eq!(fake.read("a-8", "policy"), "auto");
    fake.write("/sys/kernel/luc/a-8/stats/fsyncs", "1710\n");
    fake.write("/sys/kernel/luc/a-8/stats/commits_by_fsync", "110\n");
    session.uses("7:0".parse().unwrap());
    let (uses, failures) = session.end();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(uses.len(), 1);
    assert_eq!(
        (uses[0].stats.as_ref().unwrap().fsyncs, uses[0].fsyncs_per_commit),
        (160, Some(16.0))
    );
    assert_eq!(uses[0].policy, "auto");
    assert_eq!(fake.read("a-8", "policy"), "off");
}

#[test]
fn without_the_module_there_is_the_gate() {
    let fake = FakeMachine::without_module();
    let machine = machine(&fake);
    for asked in [RequestedLevel::Auto, RequestedLevel::Gate] {
        let plan = plan(&machine, asked, || unreachable!()).unwrap();
        assert_eq!((plan.level, plan.note, plan.count_only), (EffectiveLevel::Gate, None, vec![]));
    }
    for asked in [RequestedLevel::Kernel, RequestedLevel::Both] {
        let error = plan(&machine, asked, || unreachable!()).unwrap_err();
        assert!(matches!(error, Error::NotLoaded), "{error}");
    }
}

#[test]
fn nobody_else_can_lock_what_leases_are_kept_in() {
    let fake = FakeMachine::new();
    fake.mount("a-8", "7:0");
    // As an earlier luc made them.
    fake.write("/run/luc/kernel/lock", "");
    let lender = holder(&fake);
    lender.lend(&journal(&fake, "a-8"), &settings(&["policy=auto"])).unwrap();
    let mode = |path: &str| {
        let found = fs::metadata(fake.path(path)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("/run/luc/kernel"), 0o700);
    assert_eq!(mode("/run/luc/kernel/holders"), 0o700);
    for file in ["lock", "record.json"] {
        assert_eq!(mode(&format!("/run/luc/kernel/{file}")), 0o600, "{file}");
    }
    let holders = fs::read_dir(fake.path("/run/luc/kernel/holders")).unwrap();
    for holder in holders.flatten() {
        assert_eq!(holder.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    if !rustix::process::geteuid().is_root() {
        luc_testkit::skipped!("only root can try as another user");
        return;
    }
    // The folders above let everybody in, so that it is these files which do not.
    for folder in ["", "/run", "/run/luc", "/sys", "/sys/kernel"] {
        fs::set_permissions(fake.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = "ls \"$0/run/luc\" >/dev/null || echo 'the folder above is closed'
        for file in \"$0\"/run/luc/kernel/lock \"$0\"/run/luc/kernel/holders/*; do
            flock --nonblock \"$file\" true 2>/dev/null && echo \"$file was locked\"
        done; true";
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script])
        .arg(fake.root())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    lender.end().unwrap();
    assert_eq!(fake.read("a-8", "policy"), "off");
}
