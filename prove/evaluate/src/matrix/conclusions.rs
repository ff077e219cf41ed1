//! What the slides conclude, and whether it holds here: computed from the figures.

use luc_sweep::selection::Candidate;

use super::super::report::{Table, number};
use super::cells::DEFAULT;
use super::figures::{Figures, Ratio, middle};

/// The slides' own file systems.
const SLIDES: [&str; 4] = ["ext2", "ext3", "reiserfs", "xfs"];
/// Differences below this, as a ratio, are none: the slides call those alike.
const ALIKE: f64 = 1.05;

/// What may be said of a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    /// Not shown to be wrong, or right in part.
    Partly,
    No,
    /// No figure.
    Unknown,
}

impl Holds {
    fn word(self) -> &'static str {
        match self {
            Self::Yes => "holds",
            Self::Partly => "holds in part",
            Self::No => "does **not** hold",
            Self::Unknown => "not known",
        }
    }

    fn if_true(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// A conclusion, whether it holds, and by which figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conclusion {
    pub(super) what: String,
    pub(super) holds: Holds,
    pub(super) figures: String,
}

/// All of them.
pub(super) fn conclusions(all: &[Figures]) -> Vec<Conclusion> {
    let mut found: Vec<Conclusion> = [
        ("web", &[("xfs", "1K inodes")][..], "8 % to 9.4x"),
        ("file", &[("reiserfs", DEFAULT)], "0 % to 1.9x"),
        ("mail", &[("reiserfs", "notail")], "29 % to 5.8x"),
        (
            "database",
            &[("xfs", "2K blocks"), ("ext3", "2K blocks")],
            "2.0x to 2.4x",
        ),
    ]
    .into_iter()
    .map(|(load, named, range)| best_is(of(all, load), load, named, range))
    .collect();
    found.push(differs(all));
    found.push(options_matter(all));
    found.push(defaults_are_poor(all));
    let database = of(all, "database");
    found.push(gain_at_least(
        "database: blocks of 2 KiB, the size of its I/O, give 1.5x to 2x",
        database,
        &[("ext3", "2K blocks"), ("xfs", "2K blocks")],
        1.5,
    ));
    found.push(alike(database));
    found.push(gain_at_least(
        "mail: ReiserFS gains by notail",
        of(all, "mail"),
        &[("reiserfs", "notail")],
        ALIKE,
    ));
    found.push(gain_at_least(
        "file: XFS' default number of allocation groups costs about 25 %",
        of(all, "file"),
        &[("xfs", "16 groups")],
        1.15,
    ));
    found.push(Conclusion {
        what: "ops/joule follows ops/s nearly linearly".to_owned(),
        holds: Holds::Unknown,
        figures: "energy is unavailable in a virtual machine".to_owned(),
    });
    found
}

/// As a table.
pub(super) fn table(all: &[Figures]) -> Table {
    let mut table = Table::new(&["the slides say", "here", "figures"]);
    for Conclusion {
        what,
        holds,
        figures,
    } in conclusions(all)
    {
        table.row(vec![what, holds.word().to_owned(), figures]);
    }
    table
}

fn of<'a>(all: &'a [Figures], load: &str) -> Option<&'a Figures> {
    all.iter().find(|figures| figures.load.name == load)
}

fn unknown(what: String) -> Conclusion {
    Conclusion {
        what,
        holds: Holds::Unknown,
        figures: "not measured enough".to_owned(),
    }
}

/// The improvement of the best over the slides' defaults: `8 % to 9.40x`.
pub(super) fn improvement(figures: &Figures) -> Option<String> {
    let (low, high) = figures.over_defaults(&SLIDES)?;
    Some(format!("{low:.2}x to {high:.2}x"))
}

/// Whether one of `named` is best among the slides' file systems and at all.
fn best_is(
    figures: Option<&Figures>,
    load: &str,
    named: &[(&str, &str)],
    range: &str,
) -> Conclusion {
    let names: Vec<String> = named
        .iter()
        .map(|(file_system, options)| format!("{file_system} {options}"))
        .collect();
    let what = format!(
        "{load}: best is {}, by {range} over the defaults",
        names.join(" or ")
    );
    let Some((figures, best)) = figures.and_then(|figures| Some((figures, figures.best()?))) else {
        return unknown(what);
    };
    let is_named = |candidate: &Candidate| names.contains(&candidate.name());
    let slides: Vec<&Candidate> = figures
        .candidates
        .iter()
        .filter(|one| one.danger.is_none() && SLIDES.contains(&&*one.file_system))
        .collect();
    let best_of_slides = slides.iter().max_by(|a, b| middle(a).total_cmp(&middle(b)));
    let as_good = figures.among_the_best();
    let (holds, more) = if is_named(best) {
        (Holds::Yes, String::new())
    } else if best_of_slides.is_some_and(|one| is_named(one)) {
        (
            Holds::Partly,
            "; it is the best of the slides' file systems".to_owned(),
        )
    } else if as_good.iter().any(|one| is_named(one)) {
        (Holds::Partly, "; it is not shown to be worse".to_owned())
    } else {
        let beside = slides.iter().filter(|one| is_named(one)).map(|one| {
            format!(
                "; {} has {} of its rate",
                one.name(),
                number(middle(one) / middle(best))
            )
        });
        (Holds::No, beside.collect())
    };
    Conclusion {
        what,
        holds,
        figures: format!(
            "best is {}, {} over the slides' defaults{more}",
            best.name(),
            improvement(figures).unwrap_or_else(|| "no figure".to_owned())
        ),
    }
}

/// No file system is best for all.
fn differs(all: &[Figures]) -> Conclusion {
    let what = "no file system is best for every server".to_owned();
    let bests: Vec<(&str, &Candidate)> = all
        .iter()
        .filter_map(|figures| Some((figures.load.name, figures.best()?)))
        .collect();
    if bests.len() < 2 {
        return unknown(what);
    }
    let everywhere = bests[0..1].iter().any(|(_, first)| {
        all.iter().all(|figures| {
            let best = figures.among_the_best();
            best.iter().any(|one| one.file_system == first.file_system)
        })
    });
    let same = bests
        .iter()
        .all(|(_, best)| best.file_system == bests[0].1.file_system);
    let holds = match (same, everywhere) {
        (true, _) => Holds::No,
        (false, true) => Holds::Partly,
        (false, false) => Holds::Yes,
    };
    let list: Vec<String> = bests
        .iter()
        .map(|(load, best)| format!("{load}: {}", best.name()))
        .collect();
    Conclusion {
        what,
        holds,
        figures: list.join("; "),
    }
}

/// The greatest gain of an option over its file system's default, of each server.
fn options_matter(all: &[Figures]) -> Conclusion {
    let what = "the choice of format and mount options matters".to_owned();
    let gains: Vec<(&str, &Candidate, Ratio)> = all
        .iter()
        .filter_map(|figures| {
            let gains = figures.candidates.iter().filter_map(|one| {
                let gain = figures.gain(&one.file_system, &one.options)?;
                (!one.is_default && one.danger.is_none()).then_some((figures.load.name, one, gain))
            });
            gains.max_by(|a, b| a.2.median.total_cmp(&b.2.median))
        })
        .collect();
    if gains.is_empty() {
        return unknown(what);
    }
    let clear = gains.iter().filter(|(_, _, gain)| gain.low > ALIKE).count();
    let list: Vec<String> = gains
        .iter()
        .map(|(load, one, gain)| format!("{load}: {} {}", one.name(), times(*gain)))
        .collect();
    Conclusion {
        what,
        holds: match clear {
            0 => Holds::No,
            _ if clear == gains.len() => Holds::Yes,
            _ => Holds::Partly,
        },
        figures: format!(
            "greatest gain over the same file system's default: {}",
            list.join("; ")
        ),
    }
}

/// A default may be far from the best.
fn defaults_are_poor(all: &[Figures]) -> Conclusion {
    let what = "defaults are often suboptimal, and may be poor".to_owned();
    let ranges: Vec<(&str, f64)> = all
        .iter()
        .filter_map(|figures| {
            let others = ["ext3", "ext4", "xfs", "reiserfs", "btrfs", "f2fs"];
            Some((figures.load.name, figures.over_defaults(&others)?.1))
        })
        .collect();
    if ranges.is_empty() {
        return unknown(what);
    }
    let list: Vec<String> = ranges
        .iter()
        .map(|(load, most)| format!("{load}: {most:.2}x"))
        .collect();
    Conclusion {
        what,
        holds: Holds::if_true(ranges.iter().all(|(_, most)| *most > ALIKE)),
        figures: format!("the best over the worst default: {}", list.join("; ")),
    }
}

/// All of `named` gain at least `bound` over their defaults in the median.
fn gain_at_least(
    what: &str,
    figures: Option<&Figures>,
    named: &[(&str, &str)],
    bound: f64,
) -> Conclusion {
    let gains: Vec<(String, Ratio)> = named
        .iter()
        .filter_map(|(file_system, options)| {
            let gain = figures?.gain(file_system, options)?;
            Some((format!("{file_system} {options}"), gain))
        })
        .collect();
    if gains.is_empty() {
        return unknown(what.to_owned());
    }
    let reached = gains
        .iter()
        .filter(|(_, gain)| gain.median >= bound)
        .count();
    let some = gains.iter().any(|(_, gain)| gain.low > ALIKE);
    let list: Vec<String> = gains
        .iter()
        .map(|(name, gain)| format!("{name} {}", times(*gain)))
        .collect();
    Conclusion {
        what: what.to_owned(),
        holds: match reached {
            0 if !some => Holds::No,
            _ if reached == gains.len() => Holds::Yes,
            _ => Holds::Partly,
        },
        figures: list.join("; "),
    }
}

/// On the database the defaults but ext2's perform alike.
fn alike(figures: Option<&Figures>) -> Conclusion {
    let what = "database: the defaults perform alike, but for ext2's".to_owned();
    let rates: Vec<(&str, f64)> = SLIDES[1..]
        .iter()
        .filter_map(|name| Some((*name, middle(figures?.find(name, DEFAULT)?))))
        .collect();
    if rates.len() < 2 {
        return unknown(what);
    }
    let low = rates
        .iter()
        .map(|(_, rate)| *rate)
        .fold(f64::INFINITY, f64::min);
    let high = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let list: Vec<String> = rates
        .iter()
        .map(|(name, rate)| format!("{name} {}", number(*rate)))
        .collect();
    Conclusion {
        what,
        holds: Holds::if_true(high / low < 1.1),
        figures: format!("{} ops/s: {:.2}x apart", list.join(", "), high / low),
    }
}

fn times(ratio: Ratio) -> String {
    let Ratio { median, low, high } = ratio;
    format!("{median:.2}x ({low:.2} to {high:.2})")
}

#[cfg(test)]
mod tests {
    use super::super::cells::LOADS;
    use super::super::figures::tests::figures;
    use super::*;

    fn holds(all: &[Figures], what: &str) -> Holds {
        let all = conclusions(all);
        let found = all.iter().find(|one| one.what.contains(what));
        found.map(|one| one.holds).expect("such a conclusion")
    }

    #[test]
    fn the_slides_own_world_confirms_them() {
        let [web, mail, database, file] = LOADS;
        let all = [
            figures(
                web,
                &[
                    ("ext3", DEFAULT, 50.0),
                    ("xfs", DEFAULT, 90.0),
                    ("xfs", "1K inodes", 100.0),
                ],
            ),
            figures(
                mail,
                &[
                    ("xfs", DEFAULT, 20.0),
                    ("reiserfs", DEFAULT, 70.0),
                    ("reiserfs", "notail", 100.0),
                ],
            ),
            figures(
                database,
                &[
                    ("ext3", DEFAULT, 50.0),
                    ("ext3", "2K blocks", 100.0),
                    ("xfs", DEFAULT, 51.0),
                    ("xfs", "2K blocks", 101.0),
                ],
            ),
            figures(
                file,
                &[
                    ("reiserfs", DEFAULT, 50.0),
                    ("xfs", DEFAULT, 30.0),
                    ("xfs", "16 groups", 39.0),
                ],
            ),
        ];
        for what in [
            "web: best",
            "mail: best",
            "file: best",
            "database: best",
            "every server",
            "alike",
        ] {
            assert_eq!(holds(&all, what), Holds::Yes, "{what}");
        }
        for what in ["blocks of 2 KiB", "notail", "25 %", "suboptimal"] {
            assert_eq!(holds(&all, what), Holds::Yes, "{what}");
        }
        assert_eq!(holds(&all, "joule"), Holds::Unknown);
    }

    #[test]
    fn another_world_does_not() {
        let [web, _, database, _] = LOADS;
        let all = [
            figures(
                web,
                &[
                    ("xfs", "1K inodes", 50.0),
                    ("xfs", DEFAULT, 51.0),
                    ("btrfs", DEFAULT, 100.0),
                ],
            ),
            figures(
                database,
                &[
                    ("xfs", "2K blocks", 50.5),
                    ("xfs", DEFAULT, 50.0),
                    ("btrfs", DEFAULT, 100.0),
                ],
            ),
        ];
        for what in [
            "web: best",
            "every server",
            "blocks of 2 KiB",
            "options matters",
        ] {
            assert_eq!(holds(&all, what), Holds::No, "{what}");
        }
        assert_eq!(holds(&all, "database: best"), Holds::Partly);
        assert_eq!(holds(&all, "mail: best"), Holds::Unknown);
    }
}
