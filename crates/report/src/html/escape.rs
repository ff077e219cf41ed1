//! Text from traces, made harmless: names can be anything, `</script>` too.

use std::fmt;

/// Characters of a name or sentence that are shown; longer ones end in an ellipsis.
const MOST_CHARS: usize = 400;

/// Text in an element or an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, c) in self.0.chars().enumerate() {
            if count == MOST_CHARS {
                return f.write_str("…");
            }
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if is_steering(c) => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// Control characters, and those that turn the direction of what follows.
fn is_steering(c: char) -> bool {
    luc_events::is_steering(c) || matches!(c as u32 & 0xffff, 0xfffe | 0xffff)
}

/// A name as it stands in JSON inside a script element: clipped; quotes are the JSON writer's task.
pub(super) fn clipped(name: &str) -> String {
    name.chars().filter(|&c| !is_steering(c)).take(64).collect()
}

/// JSON that may stand in a script element: nothing in it can end the element or begin a comment.
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
    fn nothing_in_a_name_is_markup() {
        let shown = Text("</script><b a='\"'>&\x1b[31m\u{202e}").to_string();
        assert_eq!(
            shown,
            "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}[31m\u{fffd}"
        );
        let long = "x".repeat(5_000);
        assert_eq!(Text(&long).to_string().chars().count(), MOST_CHARS + 1);
    }

    #[test]
    fn an_island_cannot_be_left() {
        let value = serde_json::json!({"n": "</script><!-- \u{2028}"});
        let shown = island(&value);
        assert!(!shown.contains(['<', '>', '\u{2028}']), "{shown}");
        let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(back, value);
    }
}
