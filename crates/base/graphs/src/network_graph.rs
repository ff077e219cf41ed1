//! Boxes with arrows, as SVG. Arrows go from left to right unless they close a circle.

use std::fmt::{self, Write as _};

use super::{MOST_SERIES, NetworkGraph};
use crate::html_escape::EscapedText;

const BOX_WIDTH: f64 = 200.0;
const BOX_HEIGHT: f64 = 58.0;
const BETWEEN_COLUMNS: f64 = 150.0;
const BETWEEN_ROWS: f64 = 30.0;
const MARGIN: f64 = 12.0;
/// Letters that fit into a box.
const MAX_LETTERS: usize = 30;
const MAX_LINE_WIDTH: f64 = 7.0;

pub(super) fn write(out: &mut String, network: &NetworkGraph) -> fmt::Result {
    // 1. Places and size.
    let columns = columns(network);
    let places = places(&columns);
    let rows = columns.iter().map(|column| count(&columns, *column)).max();
    let last = columns.iter().max().copied().unwrap_or(0);
    let width = 2.0 * MARGIN + BOX_WIDTH + last as f64 * (BOX_WIDTH + BETWEEN_COLUMNS) + 40.0;
    let height =
        2.0 * MARGIN + rows.unwrap_or(1) as f64 * (BOX_HEIGHT + BETWEEN_ROWS) - BETWEEN_ROWS;
    writeln!(
        out,
        "<figure class=\"chart\"><figcaption>{}</figcaption><svg class=\"network\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" style=\"max-width:{width:.0}px;min-width:{:.0}px\" role=\"img\" aria-label=\"{}: {} boxes, {} \
         arrows; the table below has the figures\">",
        EscapedText(&network.title),
        (width * 0.7).min(700.0),
        EscapedText(&network.title),
        network.nodes.len(),
        network.links.len()
    )?;
    // 2. Arrows, as wide as their weights. Labels come last, above the boxes.
    let good = |weight: f64| {
        if weight.is_finite() { weight.max(0.0) } else { 0.0 }
    };
    let most = network.links.iter().map(|link| good(link.weight));
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let mut labels = String::new();
    for link in &network.links {
        let (Some(&from), Some(&to)) = (places.get(link.from), places.get(link.to)) else {
            continue;
        };
        let curve = Curve::between(from, to, link.from == link.to);
        let stroke = 1.0 + (MAX_LINE_WIDTH - 1.0) * (good(link.weight) / most).sqrt();
        writeln!(
            out,
            "<path class=\"arrow\" d=\"{curve}\" stroke-width=\"{stroke:.1}\"><title>{}</title></path>\
             <path class=\"tip-of\" d=\"{}\"/>",
            EscapedText(&link.title),
            curve.tip()
        )?;
        let (x, y) = curve.middle();
        write!(
            labels,
            "<text class=\"halo\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y - 7.0,
            EscapedText(&clipped(&link.label))
        )?;
    }
    // 3. Boxes, with their lines of text.
    for (node, &(x, y)) in network.nodes.iter().zip(&places) {
        write!(
            out,
            "<g><title>{}</title><rect class=\"node\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{BOX_WIDTH}\" \
             height=\"{BOX_HEIGHT}\" rx=\"7\"/><rect class=\"mark-of dot c{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"6\" \
             height=\"{BOX_HEIGHT}\" rx=\"3\"/>",
            EscapedText(&node.title),
            node.class % MOST_SERIES
        )?;
        for (number, line) in node.lines.iter().take(3).enumerate() {
            write!(
                out,
                "<text class=\"{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                if number == 0 { "label strong" } else { "" },
                x + 14.0,
                y + 18.0 + number as f64 * 16.0,
                EscapedText(&clipped(line))
            )?;
        }
        writeln!(out, "</g>")?;
    }
    writeln!(out, "{labels}</svg></figure>")
}

/// Returns a name as long as there is room for.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Assigns a column to each node, right of all nodes with an arrow to it. Arrows that close a circle do not count.
fn columns(network: &NetworkGraph) -> Vec<usize> {
    let nodes = network.nodes.len();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for link in network.links.iter().filter(|link| link.from != link.to) {
        if link.from < nodes && link.to < nodes {
            below[link.from].push(link.to);
        }
    }
    let has_arrow_to = |node: usize| below.iter().any(|below| below.contains(&node));
    let mut first: Vec<usize> = (0..nodes).filter(|&node| !has_arrow_to(node)).collect();
    first.extend(0..nodes);
    // Depth first: nodes that finish later are further to the left. Arrows to nodes in progress go back.
    let mut seen = vec![false; nodes];
    let mut finished: Vec<usize> = Vec::new();
    for node in first {
        let mut stack = vec![(node, 0)];
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        while let Some((node, next)) = stack.pop() {
            match below[node].get(next) {
                None => finished.push(node),
                Some(&child) => {
                    stack.push((node, next + 1));
                    if !std::mem::replace(&mut seen[child], true) {
                        stack.push((child, 0));
                    }
                }
            }
        }
    }
    let mut order = vec![0; nodes];
    for (place, node) in finished.iter().rev().enumerate() {
        order[*node] = place;
    }
    let mut columns = vec![0; nodes];
    for &node in finished.iter().rev() {
        for &child in &below[node] {
            if order[child] > order[node] {
                columns[child] = columns[child].max(columns[node] + 1);
            }
        }
    }
    columns
}

fn count(columns: &[usize], column: usize) -> usize {
    columns.iter().filter(|&&other| other == column).count()
}

/// Returns the upper left corner of each box: columns are centred.
fn places(columns: &[usize]) -> Vec<(f64, f64)> {
    let rows = columns.iter().map(|&column| count(columns, column)).max();
    let all = rows.unwrap_or(0) as f64;
    let mut used: Vec<usize> = vec![0; columns.iter().max().map_or(0, |most| most + 1)];
    let place = |&column: &usize| {
        let row = used[column];
        used[column] += 1;
        let free = (all - count(columns, column) as f64) / 2.0;
        (
            MARGIN + column as f64 * (BOX_WIDTH + BETWEEN_COLUMNS),
            MARGIN + (row as f64 + free) * (BOX_HEIGHT + BETWEEN_ROWS),
        )
    };
    columns.iter().map(place).collect()
}

/// A line between two boxes (cubic Bézier).
struct Curve([(f64, f64); 4]);

impl Curve {
    fn between(from: (f64, f64), to: (f64, f64), is_loop: bool) -> Self {
        let (from_y, to_y) = (from.1 + BOX_HEIGHT / 2.0, to.1 + BOX_HEIGHT / 2.0);
        let start = (from.0 + BOX_WIDTH, from_y);
        if is_loop {
            let (upper, lower) = (from_y - 12.0, from_y + 12.0);
            let out = start.0 + 38.0;
            return Self([
                (start.0, upper),
                (out, upper - 10.0),
                (out, lower + 10.0),
                (start.0, lower),
            ]);
        }
        if to.0 > from.0 {
            let bend = (to.0 - start.0) / 2.0;
            return Self([start, (start.0 + bend, from_y), (to.0 - bend, to_y), (to.0, to_y)]);
        }
        // Back, or within a column: around on the right.
        let end = (to.0 + BOX_WIDTH, to_y);
        let out = start.0.max(end.0) + 60.0;
        Self([start, (out, from_y), (out, to_y), end])
    }

    /// Returns the tip of an arrow at its end, which is level.
    fn tip(&self) -> String {
        let [_, _, (from, _), (x, y)] = self.0;
        let back = if from < x { -9 } else { 9 };
        format!("M{x:.1},{y:.1} l{back},-4.5 v9 z")
    }

    fn middle(&self) -> (f64, f64) {
        let [a, b, c, d] = self.0;
        let of = |a: f64, b: f64, c: f64, d: f64| (a + 3.0 * b + 3.0 * c + d) / 8.0;
        (of(a.0, b.0, c.0, d.0), of(a.1, b.1, c.1, d.1))
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(
            f,
            "M{:.1},{:.1} C{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}",
            a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NetworkLink, NetworkNode};
    use super::*;

    fn columns_of(nodes: usize, links: &[(usize, usize)]) -> Vec<usize> {
        let link = |&(from, to): &(usize, usize)| NetworkLink {
            from,
            to,
            weight: 1.0,
            label: String::new(),
            title: String::new(),
        };
        columns(&NetworkGraph {
            title: String::new(),
            nodes: vec![NetworkNode::default(); nodes],
            links: links.iter().map(link).collect(),
        })
    }

    #[test]
    fn arrows_go_to_the_right() {
        assert_eq!(columns_of(3, &[(0, 1), (1, 2), (0, 2)]), [0, 1, 2]);
        assert_eq!(columns_of(4, &[(2, 0), (2, 1), (1, 3), (0, 3)]), [1, 1, 0, 2]);
    }

    #[test]
    fn circles_and_missing_nodes_do_no_harm() {
        assert_eq!(columns_of(2, &[(0, 1), (1, 0), (1, 1)]), [0, 1]);
        assert_eq!(columns_of(3, &[(0, 1), (1, 2), (2, 1)]), [0, 1, 2]);
        assert_eq!(columns_of(1, &[(0, 7), (9, 0)]), [0]);
        assert!(columns_of(0, &[]).is_empty());
    }
}
