use luc_throttle::activity_watch::{ActivityState, DiskActivity, DisplayedTask, SystemActivity};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{ObservationText, ThrottleView};
use crate::{KeyAction, KeyPress};

fn seen() -> SystemActivity {
    SystemActivity {
        seconds: 2.0,
        daemon: Some(4711),
        disks: vec![DiskActivity {
            name: "sda".to_owned(),
            busy: 0.97,
            bytes_per_s: 20.0 * f64::from(1 << 20),
            efficiency: Some(0.2),
            switch_ns: Some(12e6),
            lost_bytes_per_s: Some(80.0 * f64::from(1 << 20)),
            tasks: 2,
            waiting: 1,
        }],
        tasks: vec![
            DisplayedTask {
                cgroup: "system.slice/backup.service".to_owned(),
                class: Some("batch".to_owned()),
                state: ActivityState::Uses,
                share: 0.9,
                slowdown: Some(0.56),
                disk: "sda".to_owned(),
                ..DisplayedTask::default()
            },
            DisplayedTask {
                cgroup: "system.slice/sc\x1b[31man.service".to_owned(),
                class: Some("batch".to_owned()),
                state: ActivityState::Frozen,
                why: "turn".to_owned(),
                slowdown: Some(5.0),
                frozen_ns: 1_500_000_000,
                ..DisplayedTask::default()
            },
        ],
        ..SystemActivity::default()
    }
}

fn lines(view: &mut ThrottleView, width: u16, height: u16) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    view.render(area, &mut buffer);
    let row = |y| (0..width).map(move |x| (x, y));
    (0..height).map(|y| row(y).map(|at| buffer[at].symbol()).collect()).collect()
}

#[test]
fn disks_and_tasks_are_shown() {
    let mut view = ThrottleView::new(2_000, true);
    view.update(seen());
    let lines = lines(&mut view, 120, 20);
    assert!(lines[0].contains("daemon 4711"), "{lines:#?}");
    for (what, words) in [
        ("sda", &["97%", "20%", "12 ms", "80 MiB"][..]),
        ("backup.service", &["uses", "90%", "0.56"]),
        ("an.service", &["frozen", "turn", "5", "1.50 s"]),
    ] {
        let line = lines.iter().skip(1).find(|line| line.contains(what));
        let line = line.unwrap_or_else(|| panic!("{what}: {lines:#?}"));
        for word in words {
            assert!(line.contains(word), "no {word} in {line}");
        }
    }
    assert!(!lines.concat().contains('\x1b'));
    assert!(lines[19].contains("F1Help"), "{lines:#?}");
}

#[test]
fn any_size_will_do() {
    let mut view = ThrottleView::new(2_000, false);
    for update in [false, true] {
        if update {
            view.update(seen());
        }
        for (width, height) in [(0, 0), (1, 1), (5, 3), (20, 5), (40, 8), (300, 90)] {
            lines(&mut view, width, height);
        }
    }
}

#[test]
fn keys_ask_for_help_pause_and_quit() {
    let mut view = ThrottleView::new(500, true);
    view.update(seen());
    assert_eq!(view.key(KeyPress::Char('?')), KeyAction::Draw);
    let help = lines(&mut view, 120, 40).concat();
    assert!(help.contains("any key goes back") && help.contains("EFFIC"), "{help}");
    assert!(!lines(&mut view, 120, 10).concat().contains("CGROUP "));
    for _ in 0..10 {
        view.key(KeyPress::PageDown);
    }
    assert!(lines(&mut view, 120, 10).concat().contains("CGROUP "));
    // It leaves the help, and not the view.
    assert_eq!(view.key(KeyPress::Char('q')), KeyAction::Draw);
    view.key(KeyPress::Char(' '));
    view.update(SystemActivity::default());
    assert!(lines(&mut view, 120, 20).concat().contains("backup.service"));
    for _ in 0..20 {
        view.key(KeyPress::Char('+'));
    }
    assert_eq!(view.delay_ms(), 60_000);
    view.key(KeyPress::End);
    assert_eq!(view.key(KeyPress::Char('q')), KeyAction::Quit);
}

#[test]
fn lines_are_for_scripts() {
    let text = ObservationText(&seen()).to_string();
    assert!(text.contains("daemon 4711; 2.00 s"), "{text}");
    assert!(text.contains("frozen") && text.contains("system.slice/backup.service"), "{text}");
    let nobody = ObservationText(&SystemActivity::default()).to_string();
    assert!(nobody.contains("no daemon runs, nobody is frozen"), "{nobody}");
}
