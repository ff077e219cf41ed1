//! Makes names of processes and files safe to show: anybody chooses them.

/// Whether a character steers a terminal or a page instead of being shown: control characters, and those that turn the
/// direction of what follows.
#[must_use]
pub fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Removes characters that steer a terminal or a page, see [`is_steering`].
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().filter(|&c| !is_steering(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_goes_and_letters_of_all_scripts_stay() {
        assert_eq!(plain("\u{1b}]2;x\u{7}\u{9b}1m\n"), "]2;x1m");
        let turned = "a\u{202e}b\u{2066}c\u{2069}d\u{200e}e\u{200f}f\u{61c}g\u{202a}h";
        assert_eq!(plain(turned), "abcdefgh");
        for name in ["größer", "данные", "数据库", "قاعدة", "a b"] {
            assert_eq!(plain(name), name);
        }
    }
}
