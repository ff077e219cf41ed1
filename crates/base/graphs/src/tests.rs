//! Pages of made-up figures.

use luc_testkit::page::check;

use super::*;

fn estimate(value: f64) -> Option<EstimatedValue> {
    Some(EstimatedValue { value, interval: Some((value * 0.9, value * 1.1)) })
}

fn lines() -> LineGraph {
    LineGraph {
        title: "Speedup".to_owned(),
        across: "threads".to_owned(),
        up: "times as fast".to_owned(),
        places: [1.0, 4.0, 64.0]
            .map(|number| AxisTick { name: number.to_string(), number: Some(number) })
            .to_vec(),
        reference: Some(1.0),
        series: vec![
            LineSeries {
                name: "<ext4>".to_owned(),
                figures: vec![estimate(1.0), None, estimate(2.0)],
            },
            LineSeries { name: "xfs".to_owned(), figures: vec![None, estimate(1.5), None] },
        ],
    }
}

fn whole() -> GraphPage {
    let bars = BarGraph {
        title: "Rates".to_owned(),
        row: "point".to_owned(),
        unit: "files/s".to_owned(),
        bars: vec![
            GraphBar {
                name: "a".to_owned(),
                figure: estimate(50.0),
                remark: "not converged".to_owned(),
                is_aside: false,
            },
            GraphBar { name: "b".to_owned(), figure: None, remark: String::new(), is_aside: false },
            GraphBar {
                name: "c".to_owned(),
                figure: Some(EstimatedValue { value: 100.0, interval: None }),
                remark: String::new(),
                is_aside: false,
            },
            GraphBar {
                name: "d".to_owned(),
                figure: estimate(5000.0),
                remark: String::new(),
                is_aside: true,
            },
        ],
    };
    let matrix = MatrixGraph {
        title: "Matrix".to_owned(),
        row: "target".to_owned(),
        columns: vec!["mail".to_owned(), "web".to_owned()],
        rows: vec![(
            "ext4".to_owned(),
            vec![
                estimate(1234.0).map(|figure| MatrixCell {
                    figure,
                    share: 1.0,
                    note: "1.20 of ext3".to_owned(),
                    is_best: true,
                }),
                None,
            ],
        )],
    };
    let table = GraphTable {
        title: "Counters".to_owned(),
        columns: vec![("counter".to_owned(), false), ("rho".to_owned(), true)],
        rows: vec![vec![
            "disk.flushes".into(),
            TableEntry { text: "-0.93".to_owned(), heat: Some(-0.93) },
        ]],
        more: 3,
    };
    GraphPage {
        title: "plan & <script>".to_owned(),
        kind: "sweep".to_owned(),
        facts: vec!["6 points".to_owned()],
        warnings: vec!["UNSAFE".to_owned()],
        sections: vec![PageSection {
            title: "All".to_owned(),
            text: vec!["What it is.".to_owned()],
            graphs: vec![
                Graph::Lines(lines()),
                Graph::Lines(LineGraph::default()),
                Graph::Bars(bars),
                Graph::Matrix(matrix),
                Graph::Table(table),
                Graph::Spans(spans()),
                Graph::Stacks(stacks(2)),
                Graph::Network(network()),
            ],
        }],
        footer: vec!["Read it so.".to_owned()],
    }
}

fn spans() -> SpanGraph {
    let span = |begin_ns, end_ns, class| LaneSpan {
        begin_ns,
        end_ns,
        class,
        title: "what's <it>".to_owned(),
        ..LaneSpan::default()
    };
    SpanGraph {
        title: "Calls".to_owned(),
        lane: "call".to_owned(),
        columns: vec!["time".to_owned()],
        length_ns: 1_000,
        classes: vec!["<client>".to_owned(), "server".to_owned()],
        lanes: vec![
            SpanLane {
                name: "a".to_owned(),
                note: "10.0.0.1:80".to_owned(),
                cells: vec!["1 us".to_owned()],
                spans: vec![
                    span(0, 1_000, 0),
                    LaneSpan { error_ns: Some(50), is_inner: true, ..span(100, 600, 1) },
                ],
                ..SpanLane::default()
            },
            SpanLane {
                depth: 1,
                spans: vec![span(i64::MIN, i64::MAX, 9), span(900, 800, 0)],
                ..SpanLane::default()
            },
        ],
    }
}

fn stacks(rows: usize) -> StackedBars {
    let row = |number: usize| StackedBar {
        name: format!("<host {number}>"),
        note: "3 ms".to_owned(),
        parts: vec![(number + 1) as f64, 3.0, f64::NAN, -1.0],
    };
    StackedBars {
        title: "Hosts".to_owned(),
        row: "host".to_owned(),
        unit: "time".to_owned(),
        classes: ["user", "system", "nothing", "less", "none"].map(str::to_owned).to_vec(),
        is_of_one_scale: true,
        rows: (0..rows).map(row).collect(),
    }
}

fn network() -> NetworkGraph {
    let node = |name: &str| NetworkNode {
        lines: vec![name.to_owned(), "on <host>".to_owned()],
        ..NetworkNode::default()
    };
    let link = |from, to, weight| NetworkLink {
        from,
        to,
        weight,
        label: "5/s".to_owned(),
        title: "5 & more".to_owned(),
    };
    NetworkGraph {
        title: "Map".to_owned(),
        nodes: vec![node("web"), node(&"long ".repeat(30))],
        links: vec![link(0, 1, 4.0), link(1, 0, 1.0), link(1, 1, f64::NAN), link(0, 7, 1.0)],
    }
}

#[test]
fn a_page_has_all_of_it_and_loads_nothing() {
    let page = page(&whole());
    check(&page);
    for words in [
        "plan &amp; &lt;script&gt;",
        "UNSAFE",
        "&lt;ext4&gt;",
        "1.50 (1.35 to 1.65)",
        "50 (45 to 55)",
        "not converged",
        "1.20 of ext3",
        "--heat:93%",
        "3 more",
        "Read it so.",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for words in ["<script", "http://", "https://", "url(", "<img", "<link"] {
        assert!(!page.contains(words), "{words}");
    }
    // The scale is by the longest that has its place on it.
    assert!(page.contains("<i style=\"width:50.00%\">"));
    assert!(page.contains("<i class=\"cut\" style=\"width:100.00%\">"));
    // One mark for each figure of a line, and one for each in the legend.
    assert_eq!(page.matches("class=\"dot c0\"").count(), 3);
    assert_eq!(page.matches("class=\"dot c1\"").count(), 2);
}

#[test]
fn spans_are_where_their_times_are() {
    let mut out = String::new();
    super::span_graph::write(&mut out, &spans()).expect("written");
    for part in [
        "<i class=\"fill c1 within\" style=\"left:10.000%;width:50.000%\" title=\"what&#39;s &lt;it&gt;\">",
        // The error bar is around the begin.
        "<b style=\"left:5.000%;width:10.000%\"",
        // What is beyond the axis is cut, and no span has a negative length.
        "<i class=\"fill c1\" style=\"left:0.000%;width:100.000%\"",
        "<i class=\"fill c0\" style=\"left:90.000%;width:0.000%\"",
        "style=\"padding-left:1em\"",
        "<span style=\"left:40.00%\">400 ns</span>",
        "&lt;client&gt;",
    ] {
        assert!(out.contains(part), "{part} is not in {out}");
    }
}

#[test]
fn parts_have_their_shares() {
    let mut out = String::new();
    super::stacked_bars::write(&mut out, &stacks(2)).expect("written");
    // Of 4 and of 5, on the scale of 5.
    for part in [
        "<i class=\"fill c0\" style=\"width:20.000%\" title=\"user: 25.0 %\">",
        "<i class=\"fill c1\" style=\"width:60.000%\" title=\"system: 60.0 %\">",
        "<td class=\"number\">25.0 %</td><td class=\"number\">40.0 %</td>",
        "&lt;host 1&gt;",
    ] {
        assert!(out.contains(part), "{part} is not in {out}");
    }
    for class in ["nothing", "less", "none"] {
        assert!(!out.contains(class), "{out}");
    }
    assert!(!out.contains("<details>"));
    // Many are folded up, below a legend.
    let mut page_of = whole();
    page_of.sections[0].graphs = vec![Graph::Stacks(stacks(9))];
    let page = page(&page_of);
    check(&page);
    assert!(page.contains("<details><summary>shares of 9 rows</summary>"));
    assert!(page.contains("<i class=\"key fill c0\"></i>user</span>"));
}

#[test]
fn a_map_has_arrows_with_tips() {
    let mut out = String::new();
    super::network_graph::write(&mut out, &network()).expect("written");
    assert_eq!(out.matches("class=\"node\"").count(), 2);
    // None to a box that is not there.
    assert_eq!(out.matches("class=\"arrow\"").count(), 3);
    assert_eq!(out.matches("l-9,-4.5").count(), 1);
    assert_eq!(out.matches("l9,-4.5").count(), 2);
    assert!(out.contains("stroke-width=\"7.0\"><title>5 &amp; more</title>"));
    assert!(out.contains("…</text>") && !out.contains("NaN"), "{out}");
    super::network_graph::write(&mut out, &NetworkGraph::default()).expect("written");
}

#[test]
fn lines_are_where_their_figures_are() {
    let mut out = String::new();
    super::line_graph::write(&mut out, &lines()).expect("written");
    let line =
        out.lines().find(|line| line.starts_with("<polyline class=\"line c0\"")).expect("a line");
    let points = line.split('"').nth(3).expect("points");
    let places: Vec<f64> =
        points.split([' ', ',']).map(|number| number.parse().expect("a number")).collect();
    // Two figures, the second further right and higher, which is less in SVG.
    assert_eq!(places.len(), 4);
    assert!(places[2] > places[0] + 400.0 && places[3] < places[1] - 50.0);
}

#[test]
fn odd_figures_do_no_harm() {
    let mut graph = lines();
    graph.series[0].figures[0] = Some(EstimatedValue {
        value: f64::NAN,
        interval: Some((f64::NEG_INFINITY, f64::INFINITY)),
    });
    graph.places[0].number = None;
    graph.series.extend(vec![graph.series[0].clone(); 20]);
    let mut out = String::new();
    super::line_graph::write(&mut out, &graph).expect("written");
    assert!(!out.contains("class=\"line c8\""));
    let svg = &out[..out.find("</svg>").expect("an end")];
    assert!(!svg.contains("inf"), "{svg}");
}

#[test]
fn long_lists_of_bars_are_folded_up() {
    let mut page_of = whole();
    let Graph::Bars(bars) = &mut page_of.sections[0].graphs[2] else {
        panic!("bars");
    };
    let bar = bars.bars[0].clone();
    bars.bars.resize(31, bar);
    let folded = "<details><summary>31 rows</summary>";
    let text = page(&page_of);
    check(&text);
    assert!(text.contains(folded));
    let short = page(&whole());
    assert!(!short.contains(" rows</summary>"));
}
