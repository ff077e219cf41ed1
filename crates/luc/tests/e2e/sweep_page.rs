//! The page of `luc sweep`: what is drawn where. Directories as targets need no root.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{LUC, stderr};
use tempfile::TempDir;

#[test]
fn each_workload_is_drawn_along_its_own_list() {
    let folder = TempDir::new().expect("a folder");
    let workload = |name: &str, threads: &str| {
        r#"
[[workload]]
name = "NAME"
threads = THREADS
command = ["echo", '{"n": {threads}}']
figure = { json = "/n", unit = "things" }
"#
        .replace("NAME", name)
        .replace("THREADS", threads)
    };
    let plan = format!(
        "settle = \"0\"\nthreads = [1]\nstop = {{ goal = 0.5, min = 6, max = 6 }}\n{}{}\n[[target]]\nname = \"here\"\n\
         directory = \"{}\"\n",
        workload("up", "[1, 32]"),
        workload("down", "[64, 8, 16]"),
        folder.path().display()
    );
    let out = TempDir::new().expect("a folder");
    fs::write(out.path().join("plan.toml"), plan).expect("written");
    let output = Command::new(LUC)
        .args(["sweep", "plan.toml", "--out", "out"])
        .current_dir(out.path())
        .stdin(Stdio::null())
        .output()
        .expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(out.path().join("out/report.html")).expect("written");
    // The rows of a graph's table, without the markup: the value of the axis and the speedup.
    let rows = |title: &str| -> Vec<(String, String)> {
        let from = page.find(&format!("<figcaption>{title}<")).expect("drawn");
        let table = page[from..].split("</figure>").next().expect("its end");
        let rows = table.split("<tr>").skip(2);
        rows.map(|row| {
            let cell = |mark: &str| {
                let text = row.split(mark).nth(1).and_then(|rest| rest.split('<').next());
                text.expect("a cell").to_owned()
            };
            (cell("row\">"), cell("number\">"))
        })
        .collect()
    };
    let row = |value: &str, speedup: &str| (value.to_owned(), speedup.to_owned());
    assert_eq!(rows("up by threads"), [row("1", "1 (1 to 1)"), row("32", "32 (32 to 32)")]);
    // The first value is the one to compare with, wherever it is drawn.
    assert_eq!(
        rows("down by threads"),
        [
            row("8", "0.1250 (0.1250 to 0.1250)"),
            row("16", "0.2500 (0.2500 to 0.2500)"),
            row("64", "1 (1 to 1)")
        ]
    );
}
