//! Text from others, made harmless on a page: names can be anything, `</script>` too.

use std::fmt;

/// Characters of a name or sentence that are shown; longer ones end in an ellipsis.
const MAX_CHARS: usize = 400;

/// Text in an element or an attribute.
#[derive(Clone, Copy, Debug)]
pub struct EscapedText<'a>(pub &'a str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, c) in self.0.chars().enumerate() {
            if count == MAX_CHARS {
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

/// Returns whether it is a control character, changes the direction of text, or is not allowed in XML.
#[must_use]
pub fn is_steering(c: char) -> bool {
    luc_units::is_steering(c) || matches!(c as u32 & 0xffff, 0xfffe | 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        let shown = EscapedText("</script><b a='\"'>&\x1b[31m\u{202e}").to_string();
        assert_eq!(shown, "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}[31m\u{fffd}");
        let long = "x".repeat(5_000);
        assert_eq!(EscapedText(&long).to_string().chars().count(), MAX_CHARS + 1);
    }
}
