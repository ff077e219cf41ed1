//! The page around the graphs.

use std::fmt::{self, Write as _};

use super::{
    Graph, GraphPage, MOST_SERIES, PageSection, bar_graph, graph_table, line_graph, matrix_graph,
    network_graph, span_graph, stacked_bars,
};
use crate::html_escape::EscapedText;

/// The style that all pages have in common.
pub const STYLE: &str = include_str!("style.css");
const OWN_STYLE: &str = include_str!("graphs.css");

/// Colours of lines in light and dark mode, distinguishable also for people who do not see red or green.
const COLOURS: [(&str, &str); MOST_SERIES] = [
    ("#1f5fbf", "#79aef5"),
    ("#c2410c", "#ff9d6c"),
    ("#15803d", "#6fd08c"),
    ("#8b2fc9", "#c9a0ff"),
    ("#a16207", "#e3b341"),
    ("#0e7490", "#5cc8dc"),
    ("#be185d", "#ff8fbf"),
    ("#4b5768", "#aab6c4"),
];

/// Writes the whole page as HTML.
#[must_use]
pub fn page(page: &GraphPage) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, page);
    out
}

fn write_page(out: &mut String, page: &GraphPage) -> fmt::Result {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>LUC: {}</title>\n<style>\n{STYLE}{OWN_STYLE}",
        EscapedText(&page.title)
    )?;
    colours(out)?;
    writeln!(
        out,
        "</style>\n</head>\n<body>\n<header class=\"top\"><div class=\"inner\">\
         <p class=\"brand\">LUC <span>{}</span></p><h1>{}</h1><p class=\"facts\">",
        EscapedText(&page.kind),
        EscapedText(&page.title)
    )?;
    for fact in &page.facts {
        write!(out, "<span>{}</span>", EscapedText(fact))?;
    }
    writeln!(out, "</p>")?;
    for warning in &page.warnings {
        writeln!(out, "<p class=\"warning\">{}</p>", EscapedText(warning))?;
    }
    writeln!(out, "</div></header>\n<main>")?;
    if page.sections.len() > 2 {
        write!(out, "<nav aria-label=\"Sections\">")?;
        for (number, section) in page.sections.iter().enumerate() {
            write!(out, "<a href=\"#s{number}\">{}</a>", EscapedText(&section.title))?;
        }
        writeln!(out, "</nav>")?;
    }
    for (number, section) in page.sections.iter().enumerate() {
        write_section(out, number, section)?;
    }
    writeln!(out, "</main>\n<footer>")?;
    for line in &page.footer {
        writeln!(out, "<p>{}</p>", EscapedText(line))?;
    }
    writeln!(out, "</footer>\n</body>\n</html>")
}

fn write_section(out: &mut String, number: usize, section: &PageSection) -> fmt::Result {
    writeln!(out, "<section id=\"s{number}\"><h2>{}</h2>", EscapedText(&section.title))?;
    for line in &section.text {
        writeln!(out, "<p class=\"quiet\">{}</p>", EscapedText(line))?;
    }
    // Lines and matrices stand side by side, the rest has the whole width.
    let mut is_open = false;
    for graph in &section.graphs {
        let is_small = matches!(graph, Graph::Lines(_) | Graph::Matrix(_));
        if is_small != is_open {
            out.write_str(if is_small { "<div class=\"plates\">" } else { "</div>" })?;
            is_open = is_small;
        }
        match graph {
            Graph::Lines(graph) => line_graph::write(out, graph)?,
            Graph::Bars(graph) => bar_graph::write(out, graph)?,
            Graph::Matrix(graph) => matrix_graph::write(out, graph)?,
            Graph::Spans(graph) => span_graph::write(out, graph)?,
            Graph::Stacks(graph) => stacked_bars::write(out, graph)?,
            Graph::Network(graph) => network_graph::write(out, graph)?,
            Graph::Table(graph) => graph_table::write(out, graph)?,
        }
    }
    if is_open {
        out.write_str("</div>")?;
    }
    writeln!(out, "</section>")
}

fn colours(out: &mut String) -> fmt::Result {
    write!(out, ":root{{")?;
    for (number, (light, _)) in COLOURS.iter().enumerate() {
        write!(out, "--c{number}:{light};")?;
    }
    write!(out, "}}\n@media (prefers-color-scheme:dark){{:root{{")?;
    for (number, (_, dark)) in COLOURS.iter().enumerate() {
        write!(out, "--c{number}:{dark};")?;
    }
    writeln!(out, "}}}}")?;
    for number in 0..COLOURS.len() {
        writeln!(
            out,
            ".line.c{number}{{stroke:var(--c{number})}}.band.c{number},.dot.c{number}{{fill:var(--c{number});\
             stroke:var(--c{number})}}.fill.c{number}{{background:var(--c{number})}}"
        )?;
    }
    Ok(())
}
