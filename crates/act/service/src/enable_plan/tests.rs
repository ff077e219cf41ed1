//! Plans for units as Debian 12 ships them: what `systemctl show` prints of them, and their files.

use proptest::prelude::*;

use super::*;

fn tools() -> InstalledTools {
    InstalledTools {
        library: "/usr/lib/luc/libluc_gate_preload.so".into(),
        exec: "/usr/lib/luc/luc-exec".into(),
        no_notifier: None,
    }
}

/// The facts about a unit of Debian's, whose programs are of this kind.
fn facts(unit: &str, kind: Gateability) -> UnitFacts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/units");
    let read = |kind: &str| std::fs::read_to_string(folder.join(format!("{unit}.{kind}"))).unwrap();
    let settings = UnitSettings::parse(&read("show"));
    let path = Path::new("/lib/systemd/system").join(format!("{unit}.service"));
    let programs = settings.programs().into_iter();
    UnitFacts {
        programs: programs.map(|path| (path, kind.clone())).collect(),
        files: vec![UnitFile::parse(&path, &read("service"))],
        settings,
        drop_in: None,
        environment_files: Vec::new(),
        journals: vec!["/".into()],
    }
}

fn plan(unit: &str, kind: Gateability, reach: RequestedWay) -> EnablePlan {
    EnablePlan::of(&facts(unit, kind), reach, &tools()).unwrap()
}

fn body(plan: &EnablePlan) -> &str {
    let (heading, body) = plan.drop_in.split_once('\n').unwrap();
    assert_eq!(
        heading,
        format!("# Written by `luc enable`; `luc disable {}` removes it.", plan.unit)
    );
    body
}

/// A unit whose file says more than its settings.
fn with(facts: &mut UnitFacts, show: &str, file: &str) {
    let text: String = show.lines().map(|line| format!("{line}\n")).collect();
    let more = UnitSettings::parse(&text);
    facts.settings = facts.settings.clone().replaced_by(more);
    facts.files.push(UnitFile::parse(Path::new("/etc/x.conf"), file));
}

const LIBRARY: &str = "[Service]\nExecStartPre=-/usr/lib/luc/luc-exec prepare %n\n\
                       Environment=\"LD_PRELOAD=/usr/lib/luc/libluc_gate_preload.so\" LUC_GATE_UNIT=%n\n";

#[test]
fn a_sandbox_that_lets_the_library_pass_stays_as_it_is() {
    for unit in ["redis-server", "mariadb", "nginx"] {
        let plan = plan(unit, Gateability::Gateable, RequestedWay::Auto);
        assert_eq!((body(&plan), plan.way), (LIBRARY, GateWay::Library), "{unit}");
        assert_eq!(plan.notes, [""; 0], "{unit}");
    }
}

#[test]
fn go_programs_are_notified_with_their_arguments_as_they_are() {
    let etcd = plan("etcd", Gateability::Go, RequestedWay::Auto);
    assert_eq!(
        body(&etcd),
        "[Unit]\nWants=lucd.service\nAfter=lucd.service\n[Service]\n\
         # The unit's own: ExecStart=/usr/bin/etcd $DAEMON_ARGS\nExecStart=\n\
         ExecStart=/usr/lib/luc/luc-exec notify %n -- /usr/bin/etcd $DAEMON_ARGS\nNoNewPrivileges=yes\nSyslogIdentifier=etcd\n"
    );
    assert!(etcd.notes[0].contains("can gain privileges"), "{etcd:?}");
    assert!(etcd.why.contains("Go program"), "{etcd:?}");
    // It has NoNewPrivileges already.
    let prometheus = plan("prometheus", Gateability::Go, RequestedWay::Auto);
    assert!(
        body(&prometheus).ends_with("-- /usr/bin/prometheus $ARGS\nSyslogIdentifier=prometheus\n"),
        "{prometheus:?}"
    );
}

#[test]
fn a_filter_without_seccomp_gets_it_for_notifications() {
    let redis = plan("redis-server", Gateability::Gateable, RequestedWay::Notify);
    assert!(
        body(&redis)
            .ends_with("--daemonize no\nSystemCallFilter=seccomp\nSyslogIdentifier=redis-server\n"),
        "{redis:?}"
    );
    assert_eq!(redis.notes.len(), 3, "{redis:?}");
    assert!(redis.notes[2].contains("EINTR"), "{redis:?}");
}

#[test]
fn quotes_escapes_and_lines_that_go_on_are_kept() {
    let nginx = plan("nginx", Gateability::Gateable, RequestedWay::Notify);
    assert!(
        body(&nginx).contains("notify %n -- /usr/sbin/nginx -g 'daemon on; master_process on;'\n"),
        "{nginx:?}"
    );
    let mariadb = plan("mariadb", Gateability::Gateable, RequestedWay::Notify);
    let line = body(&mariadb).lines().find(|line| line.starts_with("ExecStart=/")).unwrap();
    assert!(
        line.contains(" -- /bin/sh -c \"set -f; [ ! -e /usr/bin/galera_recovery ] && VAR= ||"),
        "{line}"
    );
    assert!(
        line.ends_with("exec /usr/sbin/mariadbd $MYSQLD_OPTS $_WSREP_NEW_CLUSTER $VAR\""),
        "{line}"
    );
    // SIGPIPE ends cron, as its unit says.
    let cron = plan("cron", Gateability::Gateable, RequestedWay::Auto);
    assert!(
        body(&cron).contains(
            "ExecStart=/usr/lib/luc/luc-exec notify %n s-- /usr/sbin/cron -f $EXTRA_OPTS\n"
        ),
        "{cron:?}"
    );
}

#[test]
fn programs_that_clean_their_environment_are_notified() {
    for unit in ["dovecot", "postfix@-", "postgresql@15-main", "cron"] {
        let plan = plan(unit, Gateability::Gateable, RequestedWay::Auto);
        assert_eq!(plan.way, GateWay::Notify, "{unit}");
        assert!(plan.why.contains("environment of"), "{plan:?}");
        // They run as root, which may install a filter as it is.
        assert!(!plan.drop_in.contains("NoNewPrivileges"), "{plan:?}");
    }
    let postgresql = plan("postgresql@15-main", Gateability::Gateable, RequestedWay::Auto);
    let line = "ExecStart=-/usr/lib/luc/luc-exec notify %n -- /usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start\n";
    assert!(body(&postgresql).contains(line), "{postgresql:?}");
}

#[test]
fn units_that_start_nothing_name_the_one_that_does() {
    for (unit, other) in
        [("postgresql", "postgresql@15-main.service"), ("postfix", "postfix@-.service")]
    {
        let refusal =
            EnablePlan::of(&facts(unit, Gateability::Gateable), RequestedWay::Auto, &tools())
                .unwrap_err();
        assert_eq!(refusal.to_string(), format!("it starts nothing itself: enable {other}"));
    }
}

#[test]
fn what_cannot_be_enabled_is_refused_with_a_reason_and_what_to_do() {
    let refusal = |change: &dyn Fn(&mut UnitFacts), reach| {
        let mut facts = facts("redis-server", Gateability::Gateable);
        change(&mut facts);
        let text = EnablePlan::of(&facts, reach, &tools()).unwrap_err().to_string();
        assert!(!text.contains('\n') && text.contains(": "), "{text}");
        text
    };
    let auto = RequestedWay::Auto;
    assert!(refusal(&|facts| facts.journals.clear(), auto).contains("no file system here has"));
    assert!(
        refusal(&|facts| with(facts, "LoadState=not-found", ""), auto).contains("no such unit")
    );
    assert!(refusal(&|facts| with(facts, "LoadState=masked", ""), auto).contains("masked"));
    assert!(refusal(&|facts| with(facts, "Id=redis.socket", ""), auto).contains("only services"));
    assert!(refusal(&|facts| with(facts, "Id=lucd.service", ""), auto).contains("luc's own"));
    let preload = ("/etc/default/redis".into(), "A=1\n LD_PRELOAD=/x\n".to_owned());
    let text =
        refusal(&|facts| facts.environment_files.push(preload.clone()), RequestedWay::Library);
    assert!(text.contains("/etc/default/redis sets LD_PRELOAD"), "{text}");
    let text =
        refusal(&|facts| with(facts, "SystemCallFilter=~ioctl bpf", ""), RequestedWay::Library);
    assert!(text.contains("(SystemCallFilter: ioctl); use --reach notify"), "{text}");
    let text = refusal(&|facts| with(facts, "AppArmorProfile=x", ""), RequestedWay::Notify);
    assert!(text.contains("AppArmorProfile"), "{text}");
    let text =
        refusal(&|facts| with(facts, "", "[Service]\nNoNewPrivileges=false"), RequestedWay::Notify);
    assert!(text.contains("NoNewPrivileges=no"), "{text}");
    let text =
        refusal(&|facts| with(facts, "", "[Service]\nExecStart=/bin/x 'y"), RequestedWay::Notify);
    assert!(text.contains("ExecStart=/bin/x 'y is not understood"), "{text}");
    let mut no_kernel = tools();
    no_kernel.no_notifier = Some("it takes Linux 5.19".to_owned());
    let facts = facts("etcd", Gateability::Go);
    let text = EnablePlan::of(&facts, auto, &no_kernel).unwrap_err().to_string();
    assert!(text.contains("5.19") && text.contains("Go program"), "{text}");
}

#[test]
fn what_the_library_needs_of_a_sandbox_is_added_and_said() {
    let mut facts = facts("redis-server", Gateability::Gateable);
    with(
        &mut facts,
        "SystemCallFilter=read write ioctl futex mmap readlinkat\nReadOnlyPaths=/\nExecPaths=/usr/bin\n\
         Environment=A=1 \"LD_PRELOAD=/a%b /usr/lib/luc/libluc_gate_preload.so\"",
        "[Service]\nExecStart=\nExecStart=+/usr/bin/redis-server",
    );
    let plan = EnablePlan::of(&facts, RequestedWay::Auto, &tools()).unwrap();
    assert_eq!(
        body(&plan),
        "[Service]\nExecStartPre=-+/usr/lib/luc/luc-exec prepare %n\n\
         Environment=\"LD_PRELOAD=/usr/lib/luc/libluc_gate_preload.so:/a%%b\" LUC_GATE_UNIT=%n\n\
         SystemCallFilter=clock_gettime clock_nanosleep getpid prctl sched_yield sigaltstack statx\nExecPaths=/usr/lib/luc\n\
         ReadWritePaths=/dev/shm\n"
    );
    assert_eq!(plan.notes.len(), 4, "{plan:?}");
}

#[test]
fn what_keeps_the_library_out_leads_to_notifications() {
    for (show, file) in [
        ("RootDirectory=/srv/x", ""),
        ("UnsetEnvironment=A LD_PRELOAD", ""),
        ("SystemCallFilter=~statx", ""),
        ("", "[Service]\nPermissionsStartOnly=true"),
    ] {
        let mut facts = facts("redis-server", Gateability::Gateable);
        with(&mut facts, show, file);
        let plan = EnablePlan::of(&facts, RequestedWay::Auto, &tools()).unwrap();
        assert_eq!(plan.way, GateWay::Notify, "{show}{file}");
        let has_root =
            plan.drop_in.contains("BindReadOnlyPaths=/usr/lib/luc/luc-exec -/run/luc/lucd.sock\n");
        assert_eq!(has_root, show.starts_with("RootDirectory"), "{plan:?}");
    }
}

#[test]
fn characters_before_a_program_stay_before_luc_exec() {
    let mut facts = facts("redis-server", Gateability::Gateable);
    let lines =
        "[Service]\nExecStart=\nExecStart=-@/bin/$a name 'x y' ; +:/bin/$b $c\nExecStart=/bin/d\\ ";
    with(&mut facts, "RestrictAddressFamilies=AF_INET\nDynamicUser=yes", lines);
    let plan = EnablePlan::of(&facts, RequestedWay::Notify, &tools()).unwrap();
    let expected = "ExecStart=\nExecStart=-/usr/lib/luc/luc-exec notify %n @ /bin/$$a name 'x y'\n\
                    ExecStart=+:/usr/lib/luc/luc-exec notify %n -- /bin/$b $c\n";
    assert!(body(&plan).contains(expected), "{plan:?}");
    assert!(body(&plan).contains("RestrictAddressFamilies=AF_UNIX\n"), "{plan:?}");
}

#[test]
fn a_plan_for_an_enabled_unit_is_the_same_again() {
    let mut facts = facts("redis-server", Gateability::Gateable);
    with(
        &mut facts,
        "SystemCallFilter=read ioctl\nRestrictAddressFamilies=AF_INET\nReadOnlyPaths=/\nNoNewPrivileges=no",
        "",
    );
    for reach in [RequestedWay::Library, RequestedWay::Notify] {
        let first = EnablePlan::of(&facts, reach, &tools()).unwrap();
        // As systemd shows it with the drop-in.
        let mut enabled = facts.clone();
        enabled.drop_in = Some(first.drop_in.clone());
        let calls =
            "read ioctl seccomp clock_nanosleep futex readlink sched_yield sigaltstack statx";
        with(
            &mut enabled,
            &format!(
                "SystemCallFilter={calls}\nRestrictAddressFamilies=AF_INET AF_UNIX\nNoNewPrivileges=yes\n\
                 ReadWritePaths=/dev/shm\nSyslogIdentifier=redis-server\n\
                 Environment=LD_PRELOAD=/usr/lib/luc/libluc_gate_preload.so LUC_GATE_UNIT=redis-server.service"
            ),
            "",
        );
        assert_eq!(EnablePlan::of(&enabled, reach, &tools()).unwrap(), first);
    }
}

proptest! {
    #[test]
    fn no_unit_panics_and_no_line_is_smuggled_in(
        show in "((Id|LoadState|SystemCallFilter|ReadOnlyPaths|NoExecPaths|Environment|User)=[^\u{0}\n]{0,20}\n){0,5}",
        file in "\\[Service\\]\n(ExecStart=[^\u{0}\n]{0,30}\n){0,3}",
        reach in prop_oneof![Just(RequestedWay::Auto), Just(RequestedWay::Library), Just(RequestedWay::Notify)],
    ) {
        let mut facts = facts("redis-server", Gateability::Gateable);
        with(&mut facts, &show, &file);
        if let Ok(plan) = EnablePlan::of(&facts, reach, &tools()) {
            let keys = [
                "[", "#", "ExecStart", "Environment=", "SystemCallFilter=", "ReadWritePaths=", "ExecPaths=",
                "RestrictAddressFamilies=", "NoNewPrivileges=", "SyslogIdentifier=", "Wants=lucd", "After=lucd",
            ];
            for line in plan.drop_in.lines() {
                prop_assert!(keys.iter().any(|key| line.starts_with(key)), "{line}");
            }
        }
    }
}
