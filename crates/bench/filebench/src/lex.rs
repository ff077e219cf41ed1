//! Converts the text of a workload file to tokens with positions.
//!
//! It is more lenient than Filebench where no file changes its meaning: sizes may end in K, M, G, t or T, a variable
//! may have one letter, carriage returns are blanks. It is stricter in that an illegal character is an error.

use super::diagnostic::{Diagnostic, TextPosition};

/// Token of a workload file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LexToken {
    pub(super) at: TextPosition,
    pub(super) kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A bare word: keyword, name, path or number with a sign.
    Word(String),
    /// A variable, without `$` and braces.
    Variable(String),
    /// A number, with its unit applied.
    Integer(u64),
    /// A text, without its quotes.
    Text(String),
    /// A sign: one of `= , { } ( ) *`.
    Sign(char),
    End,
}

impl TokenKind {
    /// Returns the token as an error names it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Variable(name) => format!("'${name}'"),
            Self::Integer(number) => format!("'{number}'"),
            Self::Text(text) => format!("\"{}\"", text.chars().take(30).collect::<String>()),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// Splits `text` into tokens; the last is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<LexToken>, Diagnostic> {
    let mut lexer =
        Lexer { rest: text.chars().collect(), next: 0, at: TextPosition { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    loop {
        lexer.skip();
        let at = lexer.at;
        let kind = lexer.token()?;
        let end = kind == TokenKind::End;
        tokens.push(LexToken { at, kind });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer {
    rest: Vec<char>,
    next: usize,
    at: TextPosition,
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.next).copied()
    }

    fn step(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.next += 1;
        if letter == '\n' {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        Some(letter)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(letter) = self.peek().filter(|&letter| wanted(letter)) {
            taken.push(letter);
            self.step();
        }
        taken
    }

    fn skip(&mut self) {
        loop {
            self.take_while(|letter| {
                matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{b}')
            });
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|letter| letter != '\n');
        }
    }

    fn token(&mut self) -> Result<TokenKind, Diagnostic> {
        let at = self.at;
        let Some(first) = self.peek() else {
            return Ok(TokenKind::End);
        };
        match first {
            '=' | ',' | '{' | '}' | '(' | ')' | '*' => {
                self.step();
                Ok(TokenKind::Sign(first))
            }
            '"' => self.text(at),
            '$' => self.variable(at),
            '0'..='9' => self.integer(at),
            'a'..='z' | 'A'..='Z' | '/' | '-' => Ok(TokenKind::Word(self.take_while(in_word))),
            other => Err(Diagnostic::new(
                at,
                format!("'{}' does not belong here", other.escape_default()),
                "remove it, or put text into \"...\"",
            )),
        }
    }

    fn text(&mut self, at: TextPosition) -> Result<TokenKind, Diagnostic> {
        self.step();
        let text = self.take_while(|letter| letter != '"');
        if self.step().is_none() {
            return Err(Diagnostic::new(at, "this text does not end", "close it with \""));
        }
        Ok(TokenKind::Text(text))
    }

    fn variable(&mut self, at: TextPosition) -> Result<TokenKind, Diagnostic> {
        self.step();
        let braces = self.peek() == Some('{');
        if braces {
            self.step();
        }
        let name = self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let named = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
        if !named || (braces && self.step() != Some('}')) {
            return Err(Diagnostic::new(
                at,
                "'$' without the name of a variable",
                "write $name: a letter, then letters, digits or _",
            ));
        }
        Ok(TokenKind::Variable(name))
    }

    fn integer(&mut self, at: TextPosition) -> Result<TokenKind, Diagnostic> {
        let text = self.take_while(in_word);
        let end = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let shift = match end {
            "" => Some(0),
            "k" | "K" => Some(10),
            "m" | "M" => Some(20),
            "g" | "G" => Some(30),
            "t" | "T" => Some(40),
            _ => None,
        };
        let Some(shift) = shift else {
            return Err(Diagnostic::new(
                at,
                format!("'{text}' is not a number"),
                "write digits and at most one of k, m, g, t (powers of 1024)",
            ));
        };
        let digits = &text[..text.len() - end.len()];
        digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(1 << shift))
            .map(TokenKind::Integer)
            .ok_or_else(|| {
                Diagnostic::new(at, format!("'{text}' is too large"), "use less than 16 EiB")
            })
    }
}

fn in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | ':' | ';' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let tokens = tokens(text).expect(text);
        tokens.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn every_kind_of_token() {
        use TokenKind::{End, Integer, Sign, Text, Variable, Word};
        let word = |text: &str| Word(text.to_owned());
        assert_eq!(
            kinds("set $a_1=16k # no\r\n name=\"x y\" mean:16384;gamma:1.5 ${b} 05 2T"),
            [
                word("set"),
                Variable("a_1".to_owned()),
                Sign('='),
                Integer(16 << 10),
                word("name"),
                Sign('='),
                Text("x y".to_owned()),
                word("mean:16384;gamma:1.5"),
                Variable("b".to_owned()),
                Integer(5),
                Integer(2 << 40),
                End
            ]
        );
    }

    #[test]
    fn a_mistake_has_its_place() {
        for (text, line, column, word) in [
            ("set $x=1\n  @", 2, 3, "'@'"),
            ("a=1.5", 1, 3, "1.5"),
            ("a=\"open", 1, 3, "does not end"),
            ("\n$", 2, 1, "'$'"),
            ("99999999999t", 1, 1, "too large"),
        ] {
            let diagnostic = tokens(text).expect_err(text);
            assert_eq!((diagnostic.at.line, diagnostic.at.column), (line, column), "{text}");
            assert!(diagnostic.to_string().contains(word), "{diagnostic}");
        }
    }
}
