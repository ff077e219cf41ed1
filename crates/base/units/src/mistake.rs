//! Mistakes on a command line.

use std::fmt::Display;

use crate::plain;

/// A mistake on a program's command line in one line that ends with the next step, of what a parser of command lines says
/// of it in several paragraphs.
#[must_use]
pub fn mistake(program: &str, said: impl Display) -> String {
    let said = said.to_string();
    let paragraph = said.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let line = words.join(" ");
    let line = plain(line.trim_start_matches("error: "));
    format!("{program}: {line}; see `{program} --help`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_one_harmless_line() {
        let said = "error: the following required arguments were not provided:\n  --out <DIR>\n  <SOURCE>...\n\n\
                    Usage: luc-fleet pull --out <DIR>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            mistake("luc-fleet", said),
            "luc-fleet: the following required arguments were not provided: --out <DIR> <SOURCE>...; see `luc-fleet --help`"
        );
        assert_eq!(mistake("luc", "error: \u{1b}[2J"), "luc: [2J; see `luc --help`");
    }
}
