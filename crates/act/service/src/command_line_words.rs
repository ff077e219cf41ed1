//! Divides command lines of unit files into words as systemd does (extract_first_word(), config_parse_exec()). Words
//! keep their quotes, escapes and specifiers.

use std::ops::Range;

/// A command of an `ExecStart=` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// Characters before the program: `-`, `@`, `:`, `+` and `!`.
    pub prefix: String,
    /// Program, with the quotes, escapes and specifiers of the file.
    pub program: String,
    /// Text after the program, unchanged but for the spaces around it.
    pub rest: String,
}

/// Reason why a line is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    #[error("a quote is not closed")]
    Quote,
    #[error("the characters before its program are not understood")]
    Prefix,
    #[error("it names no program")]
    NoProgram,
}

/// Characters that may precede a program.
const PREFIXES: [char; 5] = ['-', '@', ':', '+', '!'];

/// The commands of a line: several if words `;` divide it.
///
/// # Errors
/// [`CommandLineError`]
pub fn commands(line: &str) -> Result<Vec<CommandLine>, CommandLineError> {
    let mut all = Vec::new();
    let mut begin = 0;
    let mut words = Vec::new();
    for word in spans(line)? {
        if &line[word.clone()] == ";" {
            if !words.is_empty() {
                all.push(command(line, &words)?);
            }
            words.clear();
            begin = word.end;
        } else {
            words.push(word);
        }
    }
    if !words.is_empty() {
        all.push(command(line, &words)?);
    } else if all.is_empty() || !line[begin..].trim().is_empty() {
        return Err(CommandLineError::NoProgram);
    }
    Ok(all)
}

fn command(line: &str, words: &[Range<usize>]) -> Result<CommandLine, CommandLineError> {
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return Err(CommandLineError::NoProgram);
    };
    let word = &line[first.clone()];
    let program = word.trim_start_matches(PREFIXES);
    if program.is_empty() {
        return Err(CommandLineError::NoProgram);
    }
    let inside = program.trim_start_matches(['"', '\'']);
    let is_odd = inside != program && inside.starts_with(PREFIXES);
    // `|` runs a shell (systemd 258).
    if is_odd || inside.starts_with('|') {
        return Err(CommandLineError::Prefix);
    }
    Ok(CommandLine {
        prefix: word[..word.len() - program.len()].to_owned(),
        program: program.to_owned(),
        rest: line[first.end..last.end].trim_start().to_owned(),
    })
}

/// Finds the beginnings and ends of a line's words.
fn spans(line: &str) -> Result<Vec<Range<usize>>, CommandLineError> {
    let mut spans = Vec::new();
    let mut begin = None;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        let is_space = matches!(c, ' ' | '\t' | '\n' | '\r');
        match (quote, c) {
            (None, _) if is_space => {
                spans.extend(begin.take().map(|begin| begin..at));
                continue;
            }
            (_, '\\') => is_escaped = true,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        begin.get_or_insert(at);
    }
    if quote.is_some() {
        return Err(CommandLineError::Quote);
    }
    spans.extend(begin.map(|begin| begin..line.len()));
    Ok(spans)
}

/// Removes the quotes of words. Escapes stay, except those of quotes and backslashes. A line with an open quote is
/// divided at spaces.
#[must_use]
pub fn unquote_words(line: &str) -> Vec<String> {
    let Ok(spans) = spans(line) else {
        return line.split_whitespace().map(ToOwned::to_owned).collect();
    };
    spans.into_iter().map(|word| unquote(&line[word])).collect()
}

fn unquote(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut quote = None;
    let mut characters = word.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (_, '\\') => match characters.next_if(|c| matches!(c, '\\' | '"' | '\'' | '$' | '`')) {
                Some(escaped) => text.push(escaped),
                None => text.push('\\'),
            },
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(prefix: &str, program: &str, rest: &str) -> CommandLine {
        CommandLine {
            prefix: prefix.to_owned(),
            program: program.to_owned(),
            rest: rest.to_owned(),
        }
    }

    #[test]
    fn what_is_written_is_kept() {
        for (text, expected) in [
            ("/usr/bin/etcd $DAEMON_ARGS", line("", "/usr/bin/etcd", "$DAEMON_ARGS")),
            (
                "-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start",
                line("-", "/usr/bin/pg_ctlcluster", "--skip-systemctl-redirect %i start"),
            ),
            (
                r#"  @!!"/usr/my dir/x" "name \"a" 'b  c'\ d  "#,
                line("@!!", r#""/usr/my dir/x""#, r#""name \"a" 'b  c'\ d"#),
            ),
            (r"/bin/find . -exec x {} \;", line("", "/bin/find", r". -exec x {} \;")),
            (
                "/usr/sbin/nginx -g 'daemon on; master_process on;'",
                line("", "/usr/sbin/nginx", "-g 'daemon on; master_process on;'"),
            ),
        ] {
            assert_eq!(commands(text), Ok(vec![expected]), "{text}");
        }
    }

    #[test]
    fn semicolons_divide_commands() {
        assert_eq!(
            commands("/bin/a 1 ; -/bin/b ';' x; ;/bin/c"),
            Ok(vec![line("", "/bin/a", "1"), line("-", "/bin/b", "';' x; ;/bin/c")])
        );
        assert_eq!(commands("/bin/a ;"), Ok(vec![line("", "/bin/a", "")]));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert_eq!(commands("/bin/a 'x"), Err(CommandLineError::Quote));
        assert_eq!(commands("\"-/bin/a\" x"), Err(CommandLineError::Prefix));
        assert_eq!(commands("|echo x"), Err(CommandLineError::Prefix));
        for text in ["", " ", "-", "-@ x", ";"] {
            assert_eq!(commands(text), Err(CommandLineError::NoProgram), "{text:?}");
        }
    }

    #[test]
    fn quotes_are_taken_off() {
        assert_eq!(
            unquote_words(r#"A=1 "B=x \"y\"" 'C=z' D=a\b"#),
            ["A=1", "B=x \"y\"", "C=z", r"D=a\b"]
        );
    }

    proptest! {
        #[test]
        fn no_line_panics_and_no_word_is_lost(text in r#"[-@:+!|;'"\\ $%a-c\t\n\u{e9}]{0,40}"#) {
            let _ = unquote_words(&text);
            if let Ok(all) = commands(&text) {
                // All that is not a space or a dividing semicolon is in a command, in order.
                let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
                let kept: usize = all
                    .iter()
                    .map(|line| solid(&line.prefix) + solid(&line.program) + solid(&line.rest))
                    .sum();
                let divided = text.split_whitespace().filter(|word| *word == ";").count();
                prop_assert!(kept <= solid(&text) && kept + divided >= solid(&text));
            }
        }
    }
}
