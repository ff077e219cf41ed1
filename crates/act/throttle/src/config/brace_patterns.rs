//! Alternatives in a pattern: `a-{b,c}` stands for `a-b` and `a-c`.

/// Largest number of alternatives. More are a mistake.
const MAX_ALTERNATIVES: usize = 1024;

/// Expands a pattern with braces, which may be nested.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, &'static str> {
    let mut whole = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        let Some(start) = pattern.find(['{', '}']) else {
            whole.push(pattern);
            continue;
        };
        let (parts, end) = parts(&pattern, start).ok_or("a brace has no other")?;
        if whole.len() + open.len() + parts.len() > MAX_ALTERNATIVES {
            return Err("it stands for more than 1024 patterns");
        }
        // The last is taken first.
        for part in parts.iter().rev() {
            open.push(format!("{}{part}{}", &pattern[..start], &pattern[end..]));
        }
    }
    Ok(whole)
}

/// Alternatives of the brace at `start`, and the position after its end.
fn parts(pattern: &str, start: usize) -> Option<(Vec<&str>, usize)> {
    let mut depth = 0;
    let mut from = start + 1;
    let mut parts = Vec::new();
    for (at, c) in pattern[start..].char_indices() {
        let at = start + at;
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                parts.push(&pattern[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return None;
        }
        if depth == 0 {
            parts.push(&pattern[from..at]);
            return Some((parts, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_in_one_another() {
        for (pattern, patterns) in [
            ("a*", &["a*"][..]),
            ("{a,b}", &["a", "b"]),
            (
                "x/{a,b{1,2}}-{c,}.service",
                &[
                    "x/a-c.service",
                    "x/a-.service",
                    "x/b1-c.service",
                    "x/b1-.service",
                    "x/b2-c.service",
                    "x/b2-.service",
                ],
            ),
            ("{a}", &["a"]),
        ] {
            assert_eq!(expand(pattern).expect(pattern), patterns);
        }
        for pattern in ["{", "a}", "{a", "}{", &"{a,b}".repeat(11)] {
            assert!(expand(pattern).is_err(), "{pattern}");
        }
    }
}
