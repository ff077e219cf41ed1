//! Tables of what was found in all traces together.

use std::collections::{BTreeMap, BTreeSet};

use crate::Asked;

#[test]
fn trees_are_ranges() {
    let asked = Asked::small();
    let rows =
        asked.rows("select id, parent, root, pre, last, post from fleet.request order by id");
    let parents: BTreeMap<String, String> =
        rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    // Each request makes the front end ask twice, and each of the three has two ends.
    assert_eq!(rows.len(), 300 * 6);
    let above = |id: &str| {
        let up = std::iter::successors(Some(id.to_owned()), |id| {
            parents.get(id).filter(|parent| !parent.is_empty()).cloned()
        });
        up.collect::<Vec<_>>()
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let mut of_root: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in &rows {
        let up = above(&row[0]);
        assert_eq!(up.last(), Some(&row[2]), "the root of {}", row[0]);
        of_root.entry(&row[2]).or_default().insert(&row[0]);
    }
    assert_eq!(of_root.len(), 300);
    for top in rows.iter().filter(|row| row[1].is_empty()) {
        let range = number(&top[3])..=number(&top[4]);
        let below = rows.iter().filter(|row| range.contains(&number(&row[3])));
        let below: BTreeSet<&str> = below.map(|row| row[0].as_str()).collect();
        assert_eq!(below, of_root[top[0].as_str()]);
        let is_below = |row: &&Vec<String>| {
            number(&row[3]) >= number(&top[3]) && number(&row[5]) <= number(&top[5])
        };
        assert_eq!(rows.iter().filter(is_below).count(), below.len());
    }
}

#[test]
fn parts_sum_to_the_time_of_their_request() {
    let asked = Asked::small();
    let wrong = asked.rows(
        "select r.id, r.time_ns, sum(p.time_ns) from fleet.request r join fleet.path p on p.request = r.id
         group by r.id, r.time_ns having sum(p.time_ns) <> r.time_ns",
    );
    assert_eq!(wrong, Vec::<Vec<String>>::new());
    let found = asked.number("select count(distinct request) from fleet.path");
    assert_eq!(found, 300);
    let journal = asked.number("select count(*) from fleet.path where cause = 'commit_wait'");
    assert_eq!(journal, 60);
}

#[test]
fn functions_have_the_rows_of_their_request() {
    let asked = Asked::small();
    let id = asked.number("select id from fleet.request where number = 1");
    let same = |function: &str, query: &str| {
        let found = asked.rows(function);
        assert!(!found.is_empty(), "{function}");
        assert_eq!(found, asked.rows(query), "{function}");
    };
    same(
        &format!("select * from subtree({id}) order by pre"),
        &format!(
            "select b.* from fleet.request a join fleet.request b on a.root = b.root and b.pre between a.pre and a.last
             where a.id = {id} order by b.pre"
        ),
    );
    same(
        &format!("select * from critical_path({id}) order by step"),
        &format!("select * from fleet.path where request = {id} order by step"),
    );
    same(
        &format!("select * from blame({id}) order by 1, 2, 3, 4, 5, 6"),
        &format!(
            "select host, process, thread, name, part, cause, sum(time_ns), count(distinct request) from fleet.path
             where request = {id} group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6"
        ),
    );
    let sums = asked.rows("select sum(time_ns), max(requests) <= 300 from blame()");
    assert_eq!(sums, asked.rows("select sum(time_ns), true from fleet.path"));
    let none = asked.rows("select * from subtree(4711000)");
    assert_eq!(none, Vec::<Vec<String>>::new());
}

#[test]
fn one_clock_is_close_to_the_truth() {
    let asked = Asked::small();
    // 10 ns of the estimate's own rounding, beside what lies between the knots.
    let apart = asked.number(
        "select max(abs(global_ns(host, start_ns) - start_global_ns)) from fleet.request
         where start_global_ns is not null",
    );
    assert!(apart <= 100, "{apart} ns");
    let known = "select count(global_ns(host, start_ns)) * 1000 / count(*) from fleet.request";
    assert!(asked.number(known) >= 900);
    // Nothing arrives before it was sent.
    let early = asked.number(
        "select count(*) from fleet.edge where low_ns > latency_ns or latency_ns > high_ns or latency_ns < 0",
    );
    assert_eq!(early, 0);
    assert_eq!(asked.number("select count(*) from fleet.edge"), 300 * 6);
    let nobody =
        asked.rows("select global_ns('nobody', 5), global_ns('client', 5), global_ns(null, 5)");
    assert_eq!(nobody, [["", "5", ""]]);
}
