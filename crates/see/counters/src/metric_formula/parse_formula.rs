//! A parser of formulas: recursive descent of bounded depth.

use super::formula_tree::{FormulaError, FormulaFunction, FormulaNode, FormulaOperator};

/// Limits of a formula, so that hostile ones do not use up the stack.
const MAX_DEPTH: usize = 100;
const MAX_FORMULA_BYTES: usize = 4096;

/// Operators by precedence, lowest first; those of a line are equal.
const LEVELS: [&[(char, FormulaOperator)]; 6] = [
    &[('|', FormulaOperator::Or)],
    &[('^', FormulaOperator::Xor)],
    &[('&', FormulaOperator::And)],
    &[('<', FormulaOperator::Less), ('>', FormulaOperator::Greater)],
    &[('+', FormulaOperator::Plus), ('-', FormulaOperator::Minus)],
    &[('*', FormulaOperator::Times), ('/', FormulaOperator::Over), ('%', FormulaOperator::Modulo)],
];

/// Functions, and how many arguments they take.
const FUNCTIONS: [(&str, FormulaFunction, usize); 5] = [
    ("min", FormulaFunction::Min, 2),
    ("max", FormulaFunction::Max, 2),
    ("d_ratio", FormulaFunction::Ratio, 2),
    ("source_count", FormulaFunction::SourceCount, 1),
    ("has_event", FormulaFunction::HasEvent, 1),
];

pub(super) fn parse(text: &str) -> Result<FormulaNode, FormulaError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    if text.len() > MAX_FORMULA_BYTES {
        return Err(parser.wrong("it is too long"));
    }
    let node = parser.choice()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.wrong("something is left over")),
    }
}

struct Parser<'t> {
    text: &'t str,
    /// Index of the next byte.
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn wrong(&self, what: &str) -> FormulaError {
        let before = self.text.get(..self.at).unwrap_or_default();
        FormulaError {
            text: self.text.chars().take(200).collect(),
            at: before.chars().count() + 1,
            what: what.to_owned(),
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), FormulaError> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong(&format!("'{wanted}' is missing"))) }
    }

    /// Reads a word such as `if`, with which no name begins.
    fn word(&mut self, wanted: &str) -> bool {
        self.peek();
        let before = self.at;
        if self.symbol() == wanted {
            return true;
        }
        self.at = before;
        false
    }

    /// `A if C else B`, or what binds closer.
    fn choice(&mut self) -> Result<FormulaNode, FormulaError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let mut node = self.level(0)?;
        if self.word("if") {
            let condition = self.level(0)?;
            if !self.word("else") {
                return Err(self.wrong("'else' is missing"));
            }
            let other = self.choice()?;
            node = FormulaNode::If(Box::new([condition, node, other]));
        }
        self.depth -= 1;
        Ok(node)
    }

    fn level(&mut self, level: usize) -> Result<FormulaNode, FormulaError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut node = self.level(level + 1)?;
        while let Some(next) = self.peek()
            && let Some((_, operator)) = operators.iter().find(|(sign, _)| *sign == next)
        {
            self.at += 1;
            let right = self.level(level + 1)?;
            node = FormulaNode::Binary(*operator, Box::new(node), Box::new(right));
        }
        Ok(node)
    }

    fn unary(&mut self) -> Result<FormulaNode, FormulaError> {
        let mut is_negative = false;
        while self.take('-') {
            is_negative = !is_negative;
        }
        let node = self.atom()?;
        Ok(if is_negative {
            let zero = Box::new(FormulaNode::Number(0.0));
            FormulaNode::Binary(FormulaOperator::Minus, zero, Box::new(node))
        } else {
            node
        })
    }

    fn atom(&mut self) -> Result<FormulaNode, FormulaError> {
        if self.take('(') {
            let node = self.choice()?;
            self.expect(')')?;
            return Ok(node);
        }
        if self.take('#') {
            let name = self.symbol().to_ascii_lowercase();
            return if name.is_empty() {
                Err(self.wrong("a literal has no name"))
            } else {
                Ok(FormulaNode::Literal(name))
            };
        }
        self.peek();
        let begin = self.at;
        let symbol = self.symbol();
        if let Some(number) = self.number(begin, symbol) {
            return Ok(FormulaNode::Number(number));
        }
        if symbol.is_empty() {
            return Err(self.wrong("a number or a name is missing"));
        }
        let function = FUNCTIONS.iter().find(|(name, ..)| *name == symbol);
        match function {
            Some((_, function, count)) if self.take('(') => self.call(*function, *count),
            _ => Ok(FormulaNode::Name(name_of(symbol))),
        }
    }

    /// A number, which may have a negative exponent that no symbol has.
    fn number(&mut self, begin: usize, symbol: &str) -> Option<f64> {
        if !symbol.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        if symbol.ends_with(['e', 'E']) && self.rest().starts_with('-') {
            let digits = self.rest()[1..].chars().take_while(char::is_ascii_digit).count();
            let end = self.at + 1 + digits;
            if let Ok(number) = self.text[begin..end].parse() {
                self.at = end;
                return Some(number);
            }
        }
        symbol.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn call(
        &mut self,
        function: FormulaFunction,
        count: usize,
    ) -> Result<FormulaNode, FormulaError> {
        let mut arguments = vec![self.choice()?];
        while arguments.len() < count {
            self.expect(',')?;
            arguments.push(self.choice()?);
        }
        self.expect(')')?;
        Ok(FormulaNode::Call(function, arguments))
    }

    /// Characters of a name, with those that a backslash protects.
    fn symbol(&mut self) -> &'t str {
        let rest = self.rest();
        let mut is_protected = false;
        let end = rest.find(|c: char| {
            if is_protected {
                is_protected = false;
                return false;
            }
            is_protected = c == '\\';
            !(is_protected || c.is_ascii_alphanumeric() || "_.:@?".contains(c))
        });
        let symbol = &rest[..end.unwrap_or(rest.len())];
        self.at += symbol.len();
        symbol
    }
}

/// A name as perf prints it.
fn name_of(symbol: &str) -> String {
    symbol.replace('\\', "").replace('@', "/").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, what) in [
            ("", "a number or a name is missing at character 1"),
            ("1 +", "a number or a name is missing at character 4"),
            ("(1", "')' is missing at character 3"),
            ("min(1)", "',' is missing at character 6"),
            ("1 if 2", "'else' is missing at character 7"),
            ("1 2", "something is left over at character 3"),
            ("# + 1", "a literal has no name at character 2"),
            ("ä", "a number or a name is missing at character 1"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(what) && !error.contains('\n'), "{error}");
        }
        let deep = format!("{}1{}", "(".repeat(2000), ")".repeat(2000));
        assert!(parse(&deep).is_err_and(|error| error.what.contains("too deeply")));
        let long = vec!["1"; 5000].join("+");
        assert!(parse(&long).is_err_and(|error| error.what.contains("too long")));
    }

    #[test]
    fn exponents_may_be_negative() {
        assert_eq!(parse("2e-3"), Ok(FormulaNode::Number(0.002)));
        assert_eq!(parse("2e3"), Ok(FormulaNode::Number(2000.0)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+*/%&|^<>()#a-f0-9._:@?,\\\\ \u{e4}]{0,60}|(min|max|if|else|[()1,a ]){0,20}") {
            let _ = parse(&text);
        }
    }
}
