//! Data of a page's script, in an element that nothing in it can end.

use luc_graphs::html_escape::is_steering;

/// Clips a name for JSON inside a script element. Quotes are left to the JSON writer.
pub(super) fn clipped(name: &str) -> String {
    name.chars().filter(|&c| !is_steering(c)).take(64).collect()
}

/// Escapes JSON for a script element: nothing in it can end the element or begin a comment.
pub(super) fn island(json: &serde_json::Value) -> String {
    json.to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_island_cannot_be_left() {
        let value = serde_json::json!({"n": "</script><!-- \u{2028}"});
        let shown = island(&value);
        assert!(!shown.contains(['<', '>', '\u{2028}']), "{shown}");
        let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(back, value);
    }
}
