use serde_json::json;

use super::*;

const CLAIMS: &str = r#"
    title = "T"
    about = "{count(all)} speeds of a"
    along = "mips"
    [figure]
    fsync_ms = "mean_us(fsync) / 1000"
    [define]
    all = "in(a, stock)"
    slow_stock = "at(stock, 1000)"
    slow_gate = "at(gate, 1000)"
    [setting]
    a = { workload = "a" }
    stock = { policy = "off" }
    gate = { policy = "auto" }
    [[rows.load]]
    name = "load {workload}"
    each = ["workload"]
    [[claim]]
    rows = "load"
    text = "{row}: gate over stock,"
    figure = "least(gate / stock)"
    at-least = 1.5
    found = "{least_place(gate / stock)} MIPS"
    [[claim]]
    text = "any load: fsync, ms,"
    rows = "load"
    worst = true
    figure = "greatest(fsync_ms(gate))"
    below = 3
    [[claim]]
    text = "{row}: gate"
    rows = "load"
    not-slower = "at(gate / stock, 1000)"
    [[fact]]
    text = "{row}: speeds"
    rows = "load"
    figure = "count(stock)"
    [[fact]]
    text = "in all"
    found = "two, stock at 1000 {in(a, slow_stock)}"
    [[fact]]
    text = "{row}: chosen then judged (seed 1)"
    rows = "load"
    found = "{least(chosen_then_judged(list(gate), list(stock, gate), 1))}: {chosen_names(list(gate), list(stock, gate), 1)}"
    [[findings]]
    name = "sayings"
    title = "{agree} of {all} agree:"
    heads = ["says", "here", "verdict"]
    verdicts = ["yes", "partly", "no"]
    [[findings.finding]]
    says = ["gains everywhere"]
    rows = "load"
    agrees = "lowest(gate / stock) > 1.5"
    found = "{row} {range(gate / stock)}"
    [[findings.finding]]
    says = ["stock rises"]
    at = { workload = "a" }
    agrees = "rising(stock) == 1"
    found = "{fall_text(stock)}"
    [[findings.finding]]
    says = ["speeds of {row}"]
    rows = "load"
    each = true
    agrees = "count(stock) > 1"
    found = "{count(stock)}"
    [[findings.finding]]
    says = ["unknown"]
    at = { workload = "none" }
    agrees = "least(stock) > 0"
    found = "{least(stock)}"
    [[table]]
    title = "Rates:"
    rows = "load"
    head = "load"
    column = [{ head = "stock", cell = "{at(stock, 1000)}" }, { head = "best", cell = "{winner(list(slow_stock, slow_gate))}" }]
    [[table]]
    title = "{row}:"
    rows = "load"
    where = { workload = "a" }
    head = "MIPS"
    line = [{ head = "gate over stock", cell = "gate / stock" }]
"#;

fn data() -> Data {
    let point = |workload: &str, policy: &str, mips: &str, rates: [f64; 2]| {
        json!({ "point": [workload, policy, mips], "rounds": [0, 1],
                "figures": { "value": rates, "fsync_ms": [1.0, 2.0] } })
    };
    let data = json!({
        "part": "t", "made_by": "a test", "machine": null, "kernel": [], "axes": ["workload", "policy", "mips"],
        "points": [
            point("a", "off", "1000", [10.0, 20.0]), point("a", "off", "2000", [20.0, 20.0]),
            point("a", "auto", "1000", [20.0, 40.0]), point("a", "auto", "2000", [30.0, 32.0]),
            point("b", "off", "1000", [1.0, 1.0]), point("b", "auto", "1000", [1.0, 1.0]),
        ],
    });
    serde_json::from_value(data).expect("data")
}

#[test]
fn a_page_follows_from_claims_and_data() {
    let claims = Claims::parse("t", CLAIMS).expect("claims");
    let page = page(&claims, &data()).expect("a page").markdown("t", "");
    for line in [
        "2 speeds of a",
        "- target: load a: gate over stock, >= 1.5 -> met (1.550 at 2000 MIPS)",
        "- target: load b: gate over stock, >= 1.5 -> **not met** (1.000 at 1000 MIPS)",
        "- target: any load: fsync, ms, < 3 -> met (1.50)",
        "- fact: sayings: findings that have figures: 4 of 5",
        "- fact: load a: speeds: 2",
        "- fact: load b: speeds: 1",
        "- fact: load a: chosen then judged (seed 1): 1: gate over gate",
        "- fact: load b: chosen then judged (seed 1): 1: gate over stock",
        "- fact: in all: two, stock at 1000 15.0 (range 10.0 to 20.0)",
        "- target: load a: gate: not slower (ratio >= 0.98, lower end of its range of 2 >= 0.95) -> met (2.000 \
         (range 2.000 to 2.000))",
        "- target: load b: gate: not slower (ratio >= 0.98, lower end of its range of 2 >= 0.95) -> met (1.000 \
         (range 1.000 to 1.000))",
        "2 of 5 agree:",
        "| gains everywhere | load a 1.55 to 2.00; load b 1.00 to 1.00 | no |",
        "| stock rises | never falls | yes |",
        "| speeds of load a | 2 | yes |",
        "| speeds of load b | 1 | no |",
        "| unknown | - | not measured |",
        "| load a | 15.0 (range 10.0 to 20.0) | slow_gate |",
        "| MIPS | 1000 | 2000 |",
        "| gate over stock | 2.00 | 1.55 (range 1.50 to 1.60) |",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn processors_are_the_guest_s_in_a_row_and_else_the_machine_s() {
    let text = r#"
        title = "T"
        about = "made on {processors}"
        [setting]
        stock = { policy = "off" }
        [[rows.guest]]
        name = "guests of {processors}"
        each = ["processors"]
        [[claim]]
        rows = "guest"
        text = "{row}: more than one,"
        figure = "processors"
        at-least = 2
        found = "{processors}, {least(stock)}"
    "#;
    let point = |processors: &str, rate: f64| {
        let figures = json!({ "value": [rate] });
        json!({ "point": ["off", processors], "rounds": [0], "figures": figures })
    };
    let data = json!({
        "part": "t", "made_by": "a test", "machine": { "cpus": 64 }, "kernel": [], "axes": ["policy", "processors"],
        "points": [point("1", 5.0), point("4", 7.0)],
    });
    let data: Data = serde_json::from_value(data).expect("data");
    let claims = Claims::parse("t", text).expect("claims");
    let page = page(&claims, &data).expect("a page").markdown("t", "");
    for line in [
        "made on 64",
        "- target: guests of 1: more than one, >= 2 -> **not met** (1, 5)",
        "- target: guests of 4: more than one, >= 2 -> met (4, 7)",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (from, to, reason) in [
        ("least(gate / stock)", "lest(gate / stock)", "no function lest"),
        ("least(gate / stock)", "gate / stok", "what is 'stok'?"),
        ("rows = \"load\"", "rows = \"lod\"", "'lod' is no set of rows"),
        ("least(gate / stock)", "gate / stock", "take the least()"),
        ("each = [\"workload\"]", "each = []", "what is 'workload'?"),
        ("in(a, stock)", "count(stock)", "more than one point"),
        ("at-least = 1.5", "", "at-least or below, or not-slower"),
        ("\"at(gate / stock, 1000)\"", "\"gate / stock\"", "take at()"),
        ("found = \"two, stock", "# found = \"", "write figure or found"),
    ] {
        let claims = Claims::parse("t", &CLAIMS.replacen(from, to, 1)).expect("claims");
        let error = page(&claims, &data()).expect_err(to).to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(Claims::parse("t", "title = 1").is_err());
}
