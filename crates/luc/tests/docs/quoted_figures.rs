//! Figures that the README and the guides quote are on the pages that they link to.
//!
//! A ratio with its interval, `1.69 (1.68 to 1.71)`, must be on a page word for word; in a table, on a line of the
//! page that names the row. Any other figure with two decimals must be one of a page's, rounded.

use std::fs;

use crate::root;

/// A paragraph, or a row of a table, with the pages that it quotes.
struct Quote {
    /// First cell of a row, up to a comma or a `by`; empty of a paragraph.
    row: String,
    text: String,
    /// Text of the linked pages of the evaluation.
    pages: Vec<String>,
}

fn evaluation_pages(text: &str) -> Vec<String> {
    let names = super::links(text).filter_map(|link| link.split_once("evaluation/"));
    let paths = names.map(|(_, name)| root().join("docs/evaluation").join(name));
    paths.map(|path| fs::read_to_string(path).expect("a page")).collect()
}

/// Splits a document into paragraphs and rows. A table without links quotes what the paragraph above it does.
fn quotes(document: &str) -> Vec<Quote> {
    let mut found = Vec::new();
    let mut above = Vec::new();
    let mut is_code = false;
    let mut lines: Vec<&str> = Vec::new();
    for line in document.lines().chain([""]) {
        is_code ^= line.starts_with("```");
        if !is_code && !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
            continue;
        }
        let text = lines.join(" ");
        let own = evaluation_pages(&text);
        let is_table = text.starts_with('|');
        let pages = if is_table && own.is_empty() { above } else { own };
        let rows = if is_table { std::mem::take(&mut lines) } else { vec![text.as_str()] };
        for row in rows {
            let name = row.trim_start_matches("| ").split([',', '|']).next().unwrap_or_default();
            let name = name.split(" by ").next().unwrap_or_default().trim();
            found.push(Quote {
                row: if is_table { name.to_owned() } else { String::new() },
                text: row.to_owned(),
                pages: pages.clone(),
            });
        }
        lines.clear();
        above = pages;
    }
    found
}

/// Finds numbers with at least this many decimals, and where they begin. Neither dates nor versions are among them.
fn numbers(text: &str, decimals: usize) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let mut found = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (begin, is_part(c)) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                begin = None;
                let word = text[from..at].trim_end_matches('.');
                let is_version = text[..from].ends_with("Linux ") || text[..from].ends_with('v');
                let fraction = word.split_once('.').map_or("", |(_, fraction)| fraction);
                if !is_version && fraction.len() >= decimals && !fraction.contains('.') {
                    found.push((from, word));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the ratio with its interval or range that begins at this number, if one does.
fn with_interval(text: &str, from: usize) -> Option<&str> {
    let rest = &text[from..];
    let end = rest.find(')')?;
    let whole = &rest[..=end];
    let is_whole = match whole.split(' ').collect::<Vec<_>>()[..] {
        [_, low, "to", _] => low.starts_with('('),
        // Of a few runs.
        [_, "(range", _, "to", _] => true,
        _ => false,
    };
    is_whole.then_some(whole)
}

/// Returns what is quoted, but on none of the pages.
fn wrong(quote: &Quote) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut within = 0;
    for (from, word) in numbers(&quote.text, 2) {
        if from < within {
            continue;
        }
        let mut lines = quote.pages.iter().flat_map(|page| page.lines());
        if let Some(whole) = with_interval(&quote.text, from) {
            within = from + whole.len();
            if !lines.any(|line| line.contains(whole) && line.contains(&quote.row)) {
                wrong.push(whole.to_owned());
            }
            continue;
        }
        let decimals = word.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let quoted: f64 = word.parse().expect("a number");
        let half = 0.5 * 0.1_f64.powi(decimals as i32) + 1e-9;
        let is_it = |(_, other): (usize, &str)| {
            other.parse().is_ok_and(|other: f64| (other - quoted).abs() <= half)
        };
        if !lines.any(|line| numbers(line, decimals).into_iter().any(is_it)) {
            wrong.push(word.to_owned());
        }
    }
    wrong
}

#[test]
fn quoted_figures_are_on_the_pages() {
    let guides = fs::read_dir(root().join("docs/guide")).expect("listed").flatten();
    let documents = guides.map(|entry| entry.path()).chain([root().join("README.md")]);
    let mut quoted = 0;
    for path in documents {
        let text = fs::read_to_string(&path).expect("read");
        for quote in quotes(&text).into_iter().filter(|quote| !quote.pages.is_empty()) {
            quoted += numbers(&quote.text, 2).len();
            let wrong = wrong(&quote);
            assert!(wrong.is_empty(), "{}: {wrong:?} in: {}", path.display(), quote.text);
        }
    }
    assert!(quoted > 50, "{quoted}");
}

#[test]
fn a_wrong_digit_is_found() {
    let page = "| Redis, 8 servers | 1.69 (1.68 to 1.71) |\n| etcd | 1.68 (1.60 to 1.71) |\nrate >= 0.98 -> met (0.845)";
    let quote = |row: &str, text: &str| Quote {
        row: row.to_owned(),
        text: text.to_owned(),
        pages: vec![page.to_owned()],
    };
    for (row, text, count) in [
        ("Redis", "| Redis | 1.69 (1.68 to 1.71) |", 0),
        ("Redis", "| Redis | 1.68 (1.60 to 1.71) |", 1),
        ("Redis", "| Redis | 1.69 (1.68 to 1.72) |", 1),
        ("", "It has 0.85 of its speed on Linux 6.18, or 1.68.", 0),
        ("", "It has 0.86 of its speed.", 1),
        ("", "It has 0.83.", 1),
    ] {
        assert_eq!(wrong(&quote(row, text)).len(), count, "{text}");
    }
}
