//! Expressions of claims: `least(both / stock) >= 1.8 and count(stock) > 7`.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    /// A setting, a figure's counter, a definition of the claims, or an axis of the row.
    Name(String),
    Call(String, Vec<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
    And,
    Or,
}

/// Operators by precedence, the loosest first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        (">=", Operator::AtLeast),
        ("<=", Operator::AtMost),
        (">", Operator::Above),
        ("<", Operator::Below),
        ("==", Operator::Equal),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {reason}")]
pub(super) struct SyntaxError {
    text: String,
    reason: String,
}

pub(super) fn parse(text: &str) -> Result<Expression, SyntaxError> {
    let wrong = |reason: String| SyntaxError { text: text.to_owned(), reason };
    let mut parser = Parser { tokens: tokens(text).map_err(wrong)?, at: 0 };
    let expression = parser.level(0).map_err(wrong)?;
    match parser.tokens.get(parser.at) {
        None => Ok(expression),
        Some(rest) => Err(wrong(format!("'{rest}' comes too early"))),
    }
}

/// A word, a number or a sign.
#[derive(Debug, Clone, PartialEq)]
struct Token(String);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            '>' | '<' | '=' if rest[1..].starts_with('=') => 2,
            '>' | '<' | '+' | '-' | '*' | '/' | '(' | ')' | ',' => 1,
            other => return Err(format!("'{other}' means nothing here")),
        };
        tokens.push(Token(rest[..length].to_owned()));
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(|token| token.0.as_str())
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    /// Parses operators of this level and of those that bind more tightly.
    fn level(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.atom();
        };
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) =
            operators.iter().find(|(sign, _)| self.peek() == Some(*sign))
        {
            self.at += 1;
            let right = self.level(level + 1)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression, String> {
        if self.take("(") {
            let inner = self.level(0)?;
            return self.closed(inner);
        }
        let word = self.peek().unwrap_or("the end").to_owned();
        if !word.starts_with(is_word) || word == "the end" {
            return Err(format!("a name or a number is missing before '{word}'"));
        }
        self.at += 1;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse().map_err(|_| format!("'{word}' is no number"))?;
            return Ok(Expression::Number(number));
        }
        if !self.take("(") {
            return Ok(Expression::Name(word));
        }
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.level(0)?);
                if !self.take(",") {
                    break;
                }
            }
            return self.closed(Expression::Call(word, arguments));
        }
        Ok(Expression::Call(word, arguments))
    }

    fn closed(&mut self, expression: Expression) -> Result<Expression, String> {
        if self.take(")") { Ok(expression) } else { Err("a ')' is missing".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_bind_more_tightly_than_sums_and_those_than_comparisons() {
        let name = |name: &str| Box::new(Expression::Name(name.to_owned()));
        let found = parse("a.b + 2*f(c) >= 1").expect("right");
        let call = Expression::Call("f".to_owned(), vec![*name("c")]);
        let product = Expression::Binary(
            Operator::Multiply,
            Box::new(Expression::Number(2.0)),
            Box::new(call),
        );
        let sum = Expression::Binary(Operator::Add, name("a.b"), Box::new(product));
        let one = Box::new(Expression::Number(1.0));
        assert_eq!(found, Expression::Binary(Operator::AtLeast, Box::new(sum), one));
        assert_eq!(parse("a - b - c").expect("right"), parse("(a - b) - c").expect("right"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, reason) in [
            ("a +", "missing before 'the end'"),
            ("f(a", "a ')' is missing"),
            ("a b", "'b' comes too early"),
            ("1.2.3", "'1.2.3' is no number"),
            ("a % b", "'%' means nothing"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
