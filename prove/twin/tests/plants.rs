//! Each planted trouble is in the truth and has its effect. Effects are ratios within one run, since machines differ.

mod common;

use std::collections::BTreeSet;

use common::scene::{
    Scene, assert_longer, assert_ratio, can_be_done, median, plant_in_directory, took,
};
use common::{folder, is_root, output, run};
use luc_twin::truth::{Direction, Kind, MessageKind, Role, Row, Truth, WorkKind};

#[test]
fn a_back_end_computes_for_nothing() {
    if !is_root() {
        return;
    }
    let scene = Scene::run(Kind::Cpu, &["--plant", "cpu:15", "--seed", "1"]);
    let [met, others] = scene.searches();
    assert_ratio(&met, &others, 2.0);
    assert_eq!(scene.planted[0].times, met.len() as u64);
}

#[test]
fn a_back_end_reads_a_cold_file() {
    if !is_root() {
        return;
    }
    let (_folder, plant) = plant_in_directory("disk");
    let scene = Scene::run(Kind::Disk, &["--plant", &plant, "--seed", "2"]);
    let [met, others] = scene.searches();
    assert_ratio(&met, &others, 2.0);
    assert_eq!(scene.planted[0].times, met.len() as u64);
}

#[test]
fn an_indexer_waits_for_the_journal_and_searches_for_the_indexer() {
    if !is_root() {
        return;
    }
    let (_folder, plant) = plant_in_directory("journal");
    let scene = Scene::run(Kind::Journal, &["--plant", &plant, "--seed", "3"]);
    let [met, others] = scene.searches();
    assert_ratio(&met, &others, 1.5);
    let indexer = scene.planted[0].holder;
    assert_ne!(indexer, 0);
    assert_eq!(indexer, scene.planted[0].thread);
    assert!(scene.process().messages().all(|message| message.thread != indexer));
}

#[test]
fn a_lock_is_held_since_before_the_requests() {
    if !is_root() {
        return;
    }
    let scene = Scene::run(Kind::Lock, &["--plant", "lock", "--seed", "4"]);
    let [first, second] = &scene.planted[..] else {
        panic!("{:?}", scene.planted);
    };
    let asked = scene.trees[0].query.asked_ns;
    assert!(first.from_ns < asked && asked < first.to_ns);
    assert!(first.to_ns < second.from_ns);
    for hold in [first, second] {
        assert_ne!(hold.holder, 0);
        assert!(hold.to_ns - hold.from_ns >= hold.strength);
        // Who came while it was held waited until it was given back.
        let waits = scene.planted_work();
        let mut during =
            waits.iter().filter(|wait| hold.from_ns < wait.from_ns && wait.from_ns < hold.to_ns);
        assert!(during.clone().count() > 0);
        assert!(during.all(|wait| wait.to_ns >= hold.to_ns));
    }
    let others: Vec<u64> = scene
        .trees
        .iter()
        .filter(|tree| tree.query.asked_ns > second.to_ns)
        .map(|tree| took(&tree.query))
        .collect();
    let longest = scene.trees.iter().map(|tree| took(&tree.query)).max();
    assert!(longest.expect("one") > 3 * median(&others));
}

#[test]
fn a_pool_is_too_small() {
    if !is_root() {
        return;
    }
    let options = ["--plant", "pool", "--delay-us", "3000", "--think-us", "0"];
    let scene = Scene::run(Kind::Pool, &[&options[..], &["--seed", "5"]].concat());
    let workers = |process: &Truth| -> BTreeSet<u32> {
        let queued = process.work().filter(|work| work.kind == WorkKind::Queue);
        queued.map(|work| work.thread).collect()
    };
    assert_eq!(workers(scene.process()).len() as u64, scene.planted[0].strength);
    let queued = |process: &Truth| -> u64 {
        let queued = process.work().filter(|work| work.kind == WorkKind::Queue);
        queued.map(|work| work.to_ns - work.from_ns).sum()
    };
    let other = scene.folder.of(Role::BackEnd);
    let other = other.filter(|process| process.header.host != scene.process().header.host);
    let [other] = &other.collect::<Vec<_>>()[..] else {
        panic!("two back ends");
    };
    assert!(workers(other).len() > 1);
    let (here, there) = (queued(scene.process()), queued(other));
    assert!(here > 3 * there, "{here} ns and {there} ns");
}

#[test]
fn a_partition_is_larger() {
    if !is_root() {
        return;
    }
    let options = ["--plant", "larger:12", "--documents", "20000"];
    let options = [&options[..], &["--seed", "6"]].concat();
    // The base's own number of documents comes first.
    let folder = run(&[&["--clients", "4", "--requests", "50"][..], &options].concat());
    let (process, planted) = folder.planted().next().expect("planted");
    assert_eq!((planted.kind, planted.strength), (Kind::Larger, 12));
    let searched = |process: &Truth| -> Vec<u64> {
        let work = process.work();
        work.filter(|work| work.kind == WorkKind::Search)
            .map(|work| work.to_ns - work.from_ns)
            .collect()
    };
    let mut others = folder.of(Role::BackEnd);
    let other = others.find(|other| other.header.host != process.header.host);
    assert_ratio(&searched(process), &searched(other.expect("one")), 2.0);
}

#[test]
fn a_thread_only_ticks() {
    if !is_root() {
        return;
    }
    let scene = Scene::run(Kind::Tick, &["--plant", "tick:2", "--seed", "7"]);
    let planted = scene.planted[0];
    assert!(planted.times >= 2);
    assert!(planted.to_ns - planted.from_ns >= planted.times * planted.strength);
    let process = scene.process();
    assert_ne!(planted.thread, 0);
    assert!(process.messages().all(|message| message.thread != planted.thread));
    assert!(process.work().all(|work| work.thread != planted.thread));
}

#[test]
fn packets_get_lost() {
    if !is_root() {
        return;
    }
    let options = ["--plant", "loss:20", "--seed", "8"];
    if !can_be_done(&options) {
        return;
    }
    let scene = Scene::run(Kind::Loss, &options);
    let again = |process: &Truth| -> u64 {
        let rows = process.rows.iter();
        rows.map(|row| match row {
            Row::Connection(connection) => connection.retransmitted_bytes,
            _ => 0,
        })
        .sum()
    };
    let asking = scene.folder.of(Role::FrontEnd).next().expect("one");
    assert!(again(asking) > 0);
    // A lost question costs at least the least retransmission timeout, which no search takes.
    assert_longer(&scene);
}

#[test]
fn another_process_stops_a_back_end() {
    if !is_root() {
        return;
    }
    let scene = Scene::run(Kind::Stop, &["--plant", "stop:20", "--seed", "11"]);
    assert_longer(&scene);
    let planted = scene.planted[0];
    assert_eq!(planted.strength, 20_000_000);
    assert_ne!(planted.holder, 0);
    assert_ne!(planted.holder, scene.process().header.process);
}

#[test]
fn messages_leave_a_host_slowly() {
    if !is_root() {
        return;
    }
    let options = ["--plant", "rate:300", "--seed", "12"];
    if can_be_done(&options) {
        assert_longer(&Scene::run(Kind::Rate, &options));
    }
}

#[test]
fn the_kernel_writes_what_another_process_made_dirty() {
    if !is_root() {
        return;
    }
    let (_folder, plant) = plant_in_directory("writer");
    let scene = Scene::run(Kind::Writer, &["--plant", &plant, "--seed", "13"]);
    assert_longer(&scene);
    let planted = scene.planted[0];
    assert_ne!(planted.holder, 0);
    assert_ne!(planted.holder, scene.process().header.process);
}

#[test]
fn two_clients_share_a_connection() {
    if !is_root() {
        return;
    }
    let options = ["--plant", "share", "--delay-us", "3000", "--think-us", "0"];
    let scene = Scene::run(Kind::Share, &[&options[..], &["--seed", "9"]].concat());
    let planted = scene.planted[0];
    let client = scene.process();
    assert_eq!(client.header.role, Role::Client);
    let ports = |thread: u32| -> BTreeSet<u16> {
        let messages = client.messages();
        messages
            .filter(|message| message.thread == thread && message.direction == Direction::Sent)
            .map(|message| message.local.port())
            .collect()
    };
    assert_eq!(ports(planted.thread), ports(planted.holder));
    assert_eq!(ports(planted.thread).len(), 1);
    // The front end answers one after the other on this connection: the second request waits for the first.
    let mut met = Vec::new();
    let mut others = Vec::new();
    for tree in &scene.trees {
        let sent = client.messages().find(|message| {
            message.request == tree.query.request && message.kind == MessageKind::Query
        });
        let thread = sent.expect("sent").thread;
        if [planted.thread, planted.holder].contains(&thread) {
            met.push(took(&tree.query));
        } else {
            others.push(took(&tree.query));
        }
    }
    assert_ratio(&met, &others, 1.3);
}

#[test]
fn a_cgroup_has_a_quota_or_it_is_said_why_not() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let truth = folder.path().join("truth");
    let options = ["--plant", "quota:3", "--seed", "10"];
    let tried = output(&truth, &[&options[..], &["--requests", "4"]].concat());
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    if !tried.status.success() {
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(said.contains("--plant quota cannot be done here"), "{said}");
        return; // `stock_kernels` has a run with one.
    }
    assert_longer(&Scene::run(Kind::Quota, &options));
}

#[test]
fn seeds_plant_differently() {
    if !is_root() {
        return;
    }
    let strengths: BTreeSet<(String, u64, u64)> = (0..5)
        .map(|seed: u32| {
            let seed = seed.to_string();
            let options = ["--plant", "cpu", "--requests", "10", "--seed", &seed];
            let folder = run(&[&["--documents", "500"][..], &options].concat());
            let (process, planted) = folder.planted().next().expect("planted");
            let host = process.header.host.clone();
            (host, planted.strength, planted.times)
        })
        .collect();
    assert!(strengths.len() >= 4, "{strengths:?}");
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    if !is_root() {
        return;
    }
    for (options, words) in [
        (&["--plant", "gremlin"][..], "cpu"),
        (&["--plant", "disk"][..], "disk:/var/tmp"),
        (&["--plant", "disk:/dev/shm"][..], "tmpfs"),
        (&["--plant", "loss:99"][..], "50 %"),
        (&["--plant", "share", "--clients", "1"][..], "two clients"),
        (&["--back-ends", "0"][..], "1 to 100"),
        (&["--hits", "17"][..], "16"),
        (&["--rows", "2"][..], "give more"),
    ] {
        let folder = folder();
        let output = output(&folder.path().join("truth"), options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(words), "{options:?}: {said}");
    }
}
