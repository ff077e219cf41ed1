use serde_json::json;

use super::*;

const PAGE: &str = r#"
    title = "T"
    about = "{{ runs|length }} runs, {{ number(options.seconds) }} s"
    history = ["2026-11-30: a change."]
    prelude = """
    {% set settings = runs|distinct("setting") %}
    {% set stock = runs|where("setting", "stock")|pick("luc.rate") %}
    {% macro rate(setting) %}{{ spread(runs|where("setting", setting)|pick("luc.rate")) }}{% endmacro %}
    """
    [[claim]]
    each = "settings"
    when = "row != 'stock'"
    text = "{{ row }} over stock"
    figure = "ratio(runs|where('setting', row)|pick('luc.rate'), stock)"
    at-least = 1.5
    [[claim]]
    text = "the gate"
    not-slower = "ratio(runs|where('setting', 'gate')|pick('luc.rate'), stock)"
    found = "{{ ratio_text(ratio(runs|where('setting', 'gate')|pick('luc.rate'), stock)) }}"
    [[claim]]
    text = "nobody lost"
    met = "runs|pick('lost')|sum == 0"
    found = "{{ runs|pick('lost')|sum }}"
    [[claim]]
    text = "unknown"
    figure = "median([])"
    below = "runs|length - 1"
    [[fact]]
    each = "settings"
    when = "row == 'gate'"
    text = "{{ row }}: runs"
    figure = "runs|where('setting', row)|length"
    [[fact]]
    text = "chosen then judged (seed 1)"
    found = """{% set rates = runs|where('setting', 'gate')|pick('luc.rate') %}{% set judged = chosen_then_judged(
        [{'name': 'gate', 'runs': rates}], [{'name': 'stock', 'runs': stock}, {'name': 'none', 'runs': []}], 1)
        %}{{ judged.ours }} over {{ judged.theirs }}, {{ judged.ratios|join(' ') }}, {{ ratio_text(judged.ratio) }}"""
    [[fact]]
    text = "runs in all"
    found = "four, {{ runs|length }}"
    [[fact]]
    text = "the gate over stock"
    figure = "ratio(runs|where('setting', 'gate')|pick('luc.rate'), stock)"
    [[table]]
    title = "Rates:"
    rows = "settings"
    column = [
        { head = "setting", cell = "{{ row }}" },
        { head = "per s", cell = "{{ rate(row) }}" },
        { each = "[0, 1]", head = "run {{ column }}", cell = "{{ number((runs|where('setting', row)|pick('luc.rate'))[column]) }}" },
    ]
"#;

fn data() -> Value {
    let run = |setting: &str, rate: f64, lost: u32| json!({ "setting": setting, "luc": { "rate": rate }, "lost": lost });
    json!({ "options": { "seconds": 2.0, "seed": 1 }, "machine": {},
            "runs": [run("stock", 10.0, 0), run("stock", 10.0, 0), run("gate", 20.0, 0), run("gate", 20.0, 1)] })
}

#[test]
fn a_page_is_made_of_data() {
    let page =
        PartPage::parse("t", PAGE, None).and_then(|page| page.page(&data())).expect("a page");
    let text = page.markdown("t", "");
    for line in [
        "4 runs, 2.00 s",
        "- target: gate over stock >= 1.5 -> met (2.000)",
        "- target: the gate: not slower (ratio >= 0.98, lower end of its range of 2 >= 0.95) -> met (2.00 (range 2.00 to 2.00))",
        "- target: nobody lost -> **not met** (1)",
        "- target: unknown < 3 -> not measured (no figure)",
        "| setting | per s | run 0 | run 1 |",
        "| gate | 20.0 (range 20.0 to 20.0) | 20.0 | 20.0 |",
        "- fact: gate: runs: 2",
        "- fact: chosen then judged (seed 1): gate over stock, 2.0, -",
        "- fact: runs in all: four, 4",
        "- fact: the gate over stock: 2.00 (range 2.00 to 2.00)",
        "- fact: rounds with which a side without loss is found not slower 90 times in 100: 2 made; a ratio scatters \
         by 0.00 % from round to round (standard deviation of its logarithm), so that 5 are needed; enough for 0 of 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(text.matches("target: ").count(), 4, "{text}");
    assert!(text.ends_with("\n## History\n\n- 2026-11-30: a change.\n"), "{text}");
}

#[test]
fn mistakes_are_named() {
    for (from, to, reason) in [
        ("luc.rate", "luc.rat", "has 'luc.rat'"),
        ("pick('lost')", "pick('lots')", "has 'lots'"),
        ("met = \"", "# met = \"", "write at-least"),
        ("options.seconds", "options.second", "undefined"),
        ("rows = \"settings\"", "rows = \"setings\"", "undefined"),
        ("runs|length - 1", "'many'", "a bound is no number"),
    ] {
        let page = PartPage::parse("t", &PAGE.replace(from, to), None).expect("TOML");
        let text = match page.page(&data()) {
            Ok(page) => page.markdown("t", ""),
            Err(error) => error.to_string(),
        };
        assert!(text.contains(reason), "{from}: {text}");
    }
    assert!(PartPage::parse("t", "title = 1", None).is_err());
}
