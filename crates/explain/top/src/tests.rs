//! The view on terminals of several sizes, with scripted keys, and with random input.

use luc_events::{Cgroup, Dev, Pid, Tgid, Transaction};
use luc_explain::{
    Actor, BlameReport, CallTimePart, CallTimeParts, FileSystemReport, Finding, FindingKind,
    LatencyDistribution, ProcessReport, Remedy, RemedyKind, TimeAccount, TraceReport,
};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::*;

fn actor(process: u32, comm: &str) -> Actor {
    Actor { process: Tgid(process), comm: comm.to_owned(), cgroup: Cgroup(1) }
}

fn latency(count: u64, each_ns: u64) -> LatencyDistribution {
    LatencyDistribution {
        count,
        total_ns: count * each_ns,
        max_ns: each_ns,
        buckets: vec![(each_ns, count)],
        ..LatencyDistribution::default()
    }
}

fn parts(all: &[(CallTimePart, u64)]) -> CallTimeParts {
    all.iter().copied().collect()
}

/// A report after `times` like intervals: one file system, a victim and a culprit.
fn report(times: u64) -> TraceReport {
    let mut file_system = FileSystemReport {
        dev: Dev::new(7, 0),
        kind: "ext4".to_owned(),
        mount_point: "/srv/mail".to_owned(),
        ..FileSystemReport::default()
    };
    file_system.syncs.latency = latency(400 * times, 10_000_000);
    file_system.syncs.parts = parts(&[
        (CallTimePart::Predecessor, 1_600_000_000 * times),
        (CallTimePart::Logging, 2_400_000_000 * times),
    ]);
    file_system.commits.full = latency(100 * times, 6_000_000);
    file_system.commits.serving = 100 * times;
    file_system.commits.served = 400 * times;
    let idle = FileSystemReport {
        dev: Dev::new(8, 1),
        kind: "xfs".to_owned(),
        mount_point: "/".to_owned(),
        ..FileSystemReport::default()
    };
    let victim = actor(4711, "postgres");
    TraceReport {
        file_systems: vec![file_system, idle],
        processes: vec![
            ProcessReport {
                actor: victim.clone(),
                syncs: 400 * times,
                sync_ns: 4_000_000_000 * times,
                sync_parts: parts(&[
                    (CallTimePart::Predecessor, 1_600_000_000 * times),
                    (CallTimePart::Logging, 2_400_000_000 * times),
                ]),
                ..ProcessReport::default()
            },
            ProcessReport {
                actor: actor(12, "rsync"),
                calls: times,
                call_ns: 500_000_000 * times,
                call_parts: parts(&[(CallTimePart::DirectoryLock, 500_000_000 * times)]),
                ..ProcessReport::default()
            },
        ],
        blame: vec![BlameReport {
            dev: Dev::new(7, 0),
            victim,
            culprit: actor(12, "rsync"),
            waited_ns: 300_000_000 * times,
            load_ns: 0,
            waits: 5 * times,
            worst_transaction: Transaction(1),
            worst_ns: 1,
        }],
        findings: vec![Finding {
            kind: FindingKind::SynchronizationBound,
            sentence: "fsyncs on /srv/mail wait for commits that do not serve them".to_owned(),
            dev: Some(Dev::new(7, 0)),
            cost_ns: 1,
            share: 0.4,
            victim: None,
            culprit: None,
            evidence: Vec::new(),
        }],
        remedies: vec![Remedy {
            kind: RemedyKind::Gate,
            sentence: "run the program under `luc run`".to_owned(),
            against: FindingKind::SynchronizationBound,
            dev: Some(Dev::new(7, 0)),
            predicted_gain: Some(0.8),
            basis: "model",
        }],
        ..TraceReport::default()
    }
}

fn interval() -> TopInterval {
    let machine = MachineFigures {
        up_s: 3_723.0,
        pressure: Some(IoPressureLast10s { some: 0.5, full: 0.25 }),
        busy: [(Dev::new(7, 0), 0.99)].into(),
        ..MachineFigures::default()
    };
    TopInterval::between(&report(3), &report(5), 2.0, machine)
}

fn top(colours: bool) -> TopState {
    let mut top = TopState::new(2_000, colours, Vec::new());
    top.update(interval());
    top
}

/// The screen as text, line by line.
fn screen(top: &mut TopState, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| top.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let lines = buffer.content.chunks(usize::from(width).max(1));
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
}

fn line_with<'a>(lines: &'a [String], text: &str) -> &'a str {
    lines
        .iter()
        .find(|line| line.contains(text))
        .unwrap_or_else(|| panic!("'{text}' is not in\n{}", lines.join("\n")))
}

fn type_text(top: &mut TopState, text: &str) {
    for character in text.chars() {
        top.key(KeyPress::Char(character));
    }
}

#[test]
fn rates_are_of_the_interval_alone() {
    let interval = interval();
    let row = &interval.file_systems[0];
    assert_eq!((row.syncs_per_s, row.commits_per_s), (400.0, Some(100.0)));
    assert_eq!(row.syncs_per_commit, Some(4.0));
    assert_eq!(row.sync_ns, Some(10_000_000));
    assert_eq!(row.sync_p99_ns, Some(10_000_000));
    assert_eq!(row.earlier, Some(0.4));
    assert_eq!(row.busy, Some(0.99));
    let idle = &interval.file_systems[1];
    assert_eq!((idle.syncs_per_commit, idle.sync_ns), (None, None));
    assert_eq!(idle.commits_per_s, None, "XFS has commits that are not seen");
    let victim = &interval.processes[0];
    assert_eq!(victim.lost_ns_per_s, 4e9);
    assert_eq!(victim.waits_for[0].1, 3e8);
    let culprit = &interval.processes[1];
    assert_eq!(culprit.caused_ns_per_s, Some(3e8));
    assert_eq!(culprit.makes_wait[0].0.to_string(), "postgres (4711)");
}

#[test]
fn a_wide_terminal_shows_both_tables_and_the_detail() {
    let lines = screen(&mut top(true), 120, 36);
    assert!(lines[0].contains("up 1:02:03"), "{}", lines[0]);
    assert!(lines[1].contains("some 50.0 %, full 25.0 %"), "{}", lines[1]);
    let mail = line_with(&lines, "/srv/mail");
    for figure in ["ext4", "100", "400", "4", "10 ms", "6 ms", "40%", "99%"] {
        assert!(mail.contains(figure), "{figure}: {mail}");
    }
    assert!(line_with(&lines, "postgres").contains("4 s"));
    assert!(line_with(&lines, "rsync").contains("300 ms"));
    assert!(line_with(&lines, "-> run").contains("predicted +80 %"));
    let bar = line_with(&lines, "fsync  E");
    assert_eq!(bar.matches('E').count(), 45, "two fifths of 112: {bar}");
    assert!(line_with(&lines, "waits 300 ms/s").contains("rsync (12)"));
}

#[test]
fn narrow_terminals_keep_what_matters() {
    let lines = screen(&mut top(true), 40, 12);
    let mail = line_with(&lines, "/srv/mail");
    assert!(mail.contains("100") && mail.contains("400"), "{mail}");
    line_with(&lines, "postgres");
    let lines = screen(&mut top(true), 20, 5);
    line_with(&lines, "/srv/mai");
    let mut other = top(true);
    other.key(KeyPress::Tab);
    line_with(&screen(&mut other, 20, 5), "4711");
}

#[test]
fn keys_move_sort_filter_and_search() {
    let mut top = top(true);
    top.key(KeyPress::Tab);
    top.key(KeyPress::Down);
    assert!(line_with(&screen(&mut top, 100, 36), "cgroup").contains("rsync process 12"));
    // The selected line stays the same when the order changes.
    top.key(KeyPress::Char('I'));
    assert!(line_with(&screen(&mut top, 100, 36), "cgroup").contains("rsync process 12"));
    top.key(KeyPress::Home);
    top.key(KeyPress::F(6));
    line_with(&screen(&mut top, 100, 36), "Sort by");
    top.key(KeyPress::Home);
    top.key(KeyPress::Enter);
    assert!(line_with(&screen(&mut top, 100, 36), "cgroup").contains("postgres"));
    top.key(KeyPress::F(4));
    type_text(&mut top, "RSY");
    top.key(KeyPress::Enter);
    let lines = screen(&mut top, 100, 36);
    assert!(lines[0].contains("filter: RSY"), "{}", lines[0]);
    assert!(!lines.iter().any(|line| line.contains("  4711")));
    top.key(KeyPress::Escape);
    top.key(KeyPress::Char('/'));
    type_text(&mut top, "rsync");
    top.key(KeyPress::Enter);
    assert!(line_with(&screen(&mut top, 100, 36), "cgroup").contains("rsync process 12"));
    type_text(&mut top, "/nobody");
    line_with(&screen(&mut top, 100, 36), "Search:  nobody_");
}

#[test]
fn a_paused_view_keeps_its_figures() {
    let mut top = top(true);
    assert_eq!(top.key(KeyPress::Char(' ')), KeyAction::Draw);
    top.update(TopInterval::default());
    let lines = screen(&mut top, 100, 24);
    assert!(lines[0].contains("PAUSED"));
    line_with(&lines, "/srv/mail");
    top.key(KeyPress::Char(' '));
    top.update(TopInterval::default());
    assert!(!screen(&mut top, 100, 24).concat().contains("/srv/mail"));
}

#[test]
fn the_delay_is_changed_within_reason() {
    let mut top = top(true);
    top.key(KeyPress::Char('+'));
    assert_eq!(top.delay_ms(), 4_000);
    type_text(&mut top, "d0.5");
    top.key(KeyPress::Enter);
    assert_eq!(top.delay_ms(), 500);
    top.key(KeyPress::Char('-'));
    top.key(KeyPress::Char('-'));
    assert_eq!(top.delay_ms(), 250);
    type_text(&mut top, "dx");
    top.key(KeyPress::Enter);
    assert_eq!(top.delay_ms(), 250);
    line_with(&screen(&mut top, 100, 24), "'x' is no number");
}

#[test]
fn the_help_names_every_column_and_leaves_by_any_key() {
    let mut top = top(true);
    top.key(KeyPress::F(1));
    let lines = screen(&mut top, 120, 60);
    for title in ["PER COMM", "CAUSED/s", "JOURNL"] {
        line_with(&lines, title);
    }
    assert_eq!(top.key(KeyPress::Char('q')), KeyAction::Draw);
    assert_eq!(top.key(KeyPress::Char('q')), KeyAction::Quit);
}

#[test]
fn control_keys_reach_whoever_runs_the_view() {
    let mut top = top(true);
    top.key(KeyPress::Char('/'));
    assert_eq!(top.key(KeyPress::Control('z')), KeyAction::Suspend);
    assert_eq!(top.key(KeyPress::Control('c')), KeyAction::Quit);
    assert_eq!(top.key(KeyPress::Control('l')), KeyAction::Clear);
}

#[test]
fn without_colours_there_are_none() {
    for (colours, expected) in [(true, true), (false, false)] {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        let mut top = top(colours);
        terminal.draw(|frame| top.draw(frame)).unwrap();
        let cells = &terminal.backend().buffer().content;
        let coloured = cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(coloured, expected);
    }
}

#[test]
fn lines_for_scripts_have_both_tables() {
    let text = interval_text::IntervalText(&interval()).to_string();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(line_with(&lines, "/srv/mail  ").contains("400"));
    line_with(&lines, "postgres (4711) waits 300 ms a second for the work of rsync (12)");
    assert!(lines.iter().all(|line| line.len() < 130), "{text}");
}

#[test]
fn threads_say_what_is_known_of_them() {
    let account = |storage_ns: u64| TimeAccount {
        thread: Some(Pid(99)),
        process: Some(Tgid(98)),
        comm: "writer".to_owned(),
        storage_ns,
        blocked: [("commit_wait", storage_ns), ("futex", 7)].into(),
        ..TimeAccount::default()
    };
    let with = |storage_ns| {
        let mut report = TraceReport::default();
        report.accounts.threads.push(account(storage_ns));
        report
    };
    let found =
        TopInterval::between(&with(1_000_000), &with(501_000_000), 1.0, MachineFigures::default());
    let row = &found.threads[0];
    assert_eq!((row.id(), row.lost_ns_per_s), (99, 5e8));
    assert_eq!(row.time.share(PartGroup::Commit), 1.0);
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,12}", "/[a-zé漢\u{1b}\u{200d}\n ]{0,20}", Just(String::new())]
}

fn any_parts() -> impl Strategy<Value = CallTimeParts> {
    prop::collection::vec((0..CallTimePart::ALL.len(), any::<u64>()), 0..6)
        .prop_map(|all| all.into_iter().map(|(part, ns)| (CallTimePart::ALL[part], ns)).collect())
}

prop_compose! {
    fn any_latency()(count in any::<u64>(), total_ns in any::<u64>(), max_ns in any::<u64>(),
                     buckets in prop::collection::vec(any::<(u64, u64)>(), 0..4)) -> LatencyDistribution {
        LatencyDistribution { count, total_ns, max_ns, buckets, ..LatencyDistribution::default() }
    }
}

prop_compose! {
    fn any_file_system()(dev in 0..9_u32, mount_point in any_name(), kind in any_name(), syncs in any_latency(),
                         sync_parts in any_parts(), full in any_latency(), fast in any_latency(),
                         served in any::<(u64, u64)>()) -> FileSystemReport {
        let mut report = FileSystemReport { dev: Dev(dev), mount_point, kind, ..FileSystemReport::default() };
        report.syncs.latency = syncs;
        report.syncs.parts = sync_parts;
        report.commits.full = full;
        report.commits.fast = fast;
        (report.commits.serving, report.commits.served) = served;
        report
    }
}

prop_compose! {
    fn any_report()(file_systems in prop::collection::vec(any_file_system(), 0..12),
                    processes in prop::collection::vec((0..9_u32, any_name(), any_parts(), any::<u64>()), 0..40),
                    blame in prop::collection::vec((0..9_u32, 0..9_u32, any::<u64>()), 0..9)) -> TraceReport {
        TraceReport {
            file_systems,
            processes: processes.into_iter().map(|(process, comm, sync_parts, syncs)| ProcessReport {
                actor: actor(process, &comm), sync_parts, syncs, ..ProcessReport::default()
            }).collect(),
            blame: blame.into_iter().map(|(victim, culprit, waited_ns)| BlameReport {
                dev: Dev(1), victim: actor(victim, "v"), culprit: actor(culprit, "c"), waited_ns, load_ns: 0,
                waits: 1, worst_transaction: Transaction(1), worst_ns: 1,
            }).collect(),
            ..report(1)
        }
    }
}

fn any_key() -> impl Strategy<Value = KeyPress> {
    prop_oneof![
        4 => prop::sample::select(vec![
            KeyPress::Up, KeyPress::Down, KeyPress::PageUp, KeyPress::PageDown, KeyPress::Home, KeyPress::End, KeyPress::Tab, KeyPress::Enter, KeyPress::Escape,
            KeyPress::Backspace, KeyPress::F(1), KeyPress::F(3), KeyPress::F(4), KeyPress::F(6),
        ]),
        2 => prop::sample::select(" Hd+-I/\\>nhkj".chars().map(KeyPress::Char).collect::<Vec<_>>()),
        1 => any::<char>().prop_map(KeyPress::Char),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is measured, pressed and resized: the selected line of the active table is on the screen if there is
    /// room for one, and nothing panics.
    #[test]
    fn anything_can_be_drawn(steps in prop::collection::vec(
        (any_report(), any_report(), any::<f64>(), prop::collection::vec(any_key(), 0..8), 0..130_u16, 0..50_u16), 1..6,
    )) {
        let mut top = TopState::new(1_000, true, vec!["nothing is missing".to_owned()]);
        for (before, after, seconds, keys, width, height) in steps {
            top.update(TopInterval::between(&before, &after, seconds, MachineFigures::default()));
            for key in keys {
                top.key(key);
            }
            let lines = screen(&mut top, width, height);
            let steers = lines.concat().contains('\u{1b}');
            prop_assert!(!steers);
            let list = top.list();
            if list.height > 0 {
                prop_assert!(list.first <= list.place && list.place < list.first + list.height);
            }
        }
    }
}
