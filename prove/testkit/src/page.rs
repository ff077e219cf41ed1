//! Checks of HTML pages: well-formedness, and rendering by a browser.

use std::path::Path;
use std::process::Command;

/// Checks a self-contained page.
///
/// # Panics
/// If elements do not nest, attributes are not quoted, or anything outside of the page is named.
pub fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!doctype html>").expect("a doctype");
    while let Some(begin) = rest.find('<') {
        assert!(!rest[..begin].contains('>'), "{}", &rest[..begin]);
        rest = &rest[begin + 1..];
        let end = tag_end(rest);
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {open:?}");
            continue;
        }
        let name = tag.split([' ', '/', '\n']).next().expect("a name");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "<{tag}>");
        for outside in [" src=", " onerror=", " onclick=", "url("] {
            assert!(!tag.contains(outside), "<{tag}>");
        }
        let links = tag.split(" href=").skip(1);
        assert!(links.into_iter().all(|link| link.starts_with("\"#")), "<{tag}>");
        if matches!(name, "script" | "style") {
            let close = format!("</{name}>");
            let end = rest.find(&close).expect("it is closed");
            assert!(!rest[..end].contains("@import") && !rest[..end].contains("url("));
            rest = &rest[end + close.len()..];
        } else if !matches!(name, "meta" | "br") && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

/// Returns the end of a tag: the first > that is not in quotes.
fn tag_end(tag: &str) -> usize {
    let mut quoted = false;
    for (index, c) in tag.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return index,
            '<' => panic!("a tag in a tag: {}", &tag[..index]),
            _ => (),
        }
    }
    panic!("a tag without an end: {tag}");
}

/// Returns the elements of a page as Chromium shows them, as text; `None` after marking the test as skipped where it is
/// not installed. Its profile is beside the page.
///
/// # Panics
/// If it shows no page, or has something to say of it: as of a style that the page itself forbids.
#[must_use]
pub fn in_browser(page: &Path) -> Option<String> {
    let folder = page.parent().expect("a folder");
    let shown = Command::new("timeout")
        .args(["120", "chromium", "--headless", "--no-sandbox"])
        .args(["--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-sync"])
        .args(["--disable-component-update", "--enable-logging=stderr"])
        .arg("--dump-dom")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", folder)
        .output()
        .expect("timeout runs");
    if shown.status.code() == Some(127) {
        crate::skipped!("chromium is not installed");
        return None;
    }
    let dom = String::from_utf8(shown.stdout).expect("text");
    let message = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(dom.contains("</html>"), "{message}");
    assert!(!message.contains("CONSOLE"), "{message}");
    Some(dom)
}
