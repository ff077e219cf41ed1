//! Pages that are made of raw data are in `docs/evaluation` as they are made.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_page_follows_from_its_raw_data() {
    let evaluate = Path::new(env!("CARGO_BIN_EXE_luc-evaluate"));
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evaluation");
    let out = tempfile::tempdir().expect("a directory");
    let raw = out.path().join("raw");
    fs::create_dir(&raw).expect("made");
    for entry in fs::read_dir(published.join("raw")).expect("listed").flatten() {
        fs::copy(entry.path(), raw.join(entry.file_name())).expect("copied");
    }
    // Any program will do as luc: nothing is measured.
    let made = Command::new(evaluate)
        .args(["--again", "--luc"])
        .arg(evaluate)
        .arg("--out")
        .arg(out.path())
        .output()
        .expect("luc-evaluate runs");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(matches!(made.status.code(), Some(0 | 1)), "{said}");
    let mut pages = 0;
    for entry in fs::read_dir(out.path()).expect("listed").flatten() {
        if !entry.path().is_file() {
            continue;
        }
        let name = entry.file_name();
        let read = |path: &Path| fs::read_to_string(path).expect("a page");
        let (page, known) = (read(&entry.path()), read(&published.join(&name)));
        let line = page.lines().zip(known.lines()).find(|(page, known)| page != known);
        let name = name.display();
        assert!(page == known, "{name}: `luc-evaluate --again` makes another: {line:?}");
        pages += 1;
    }
    assert!(pages >= 60, "{pages}");
}
