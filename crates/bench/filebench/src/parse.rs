//! Converts tokens to commands: recursive descent over the whole language.
//!
//! Keywords are special only where they are expected, so a name may be `random` or `run`.

use std::collections::HashSet;

use super::ast::{
    AstAttribute, AstAttributes, AstCommand, AstFlowop, AstThread, AstValue, CommandAction,
    RunEndRule, VariableSetting,
};
use super::diagnostic::{Diagnostic, TextPosition};
use super::language_words;
use super::lex::{LexToken, TokenKind, tokens};

const COMMANDS: &[&str] = &[
    "set",
    "define",
    "create",
    "run",
    "psrun",
    "sleep",
    "echo",
    "system",
    "eventgen",
    "debug",
    "version",
    "quit",
    "list",
    "enable",
    "domultisync",
];

pub(super) fn parse(text: &str) -> Result<Vec<AstCommand>, Diagnostic> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, composites: HashSet::new() };
    let mut commands = Vec::new();
    while parser.peek() != &TokenKind::End {
        let at = parser.at();
        match parser.command()? {
            Some(action) => commands.push(AstCommand { at, action }),
            None => break,
        }
    }
    Ok(commands)
}

struct Parser {
    tokens: Vec<LexToken>,
    next: usize,
    composites: HashSet<String>,
}

impl Parser {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.next].kind
    }

    fn at(&self) -> TextPosition {
        self.tokens[self.next].at
    }

    /// Returns the next token and passes it, except for the end.
    fn step(&mut self) -> TokenKind {
        let kind = self.peek().clone();
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
        kind
    }

    fn accept(&mut self, sign: char) -> bool {
        let found = self.peek() == &TokenKind::Sign(sign);
        if found {
            self.step();
        }
        found
    }

    fn expect(&mut self, sign: char, place: &str) -> Result<(), Diagnostic> {
        if self.accept(sign) {
            return Ok(());
        }
        Err(self.explain_unexpected(&format!("'{sign}'"), place))
    }

    /// Builds the error for a token that is not `wanted`. At the end of a line, that line is named.
    fn explain_unexpected(&self, wanted: &str, place: &str) -> Diagnostic {
        let (at, found) = match self.next.checked_sub(1).map(|last| self.tokens[last].at) {
            Some(last) if last.line < self.at().line => {
                let is_end = self.peek() == &TokenKind::End;
                let line_ends = || "the line ends".to_owned();
                (last, if is_end { self.peek().shown() } else { line_ends() })
            }
            _ => (self.at(), self.peek().shown()),
        };
        Diagnostic::new(at, format!("{found} {place}"), format!("{wanted} belongs here"))
    }

    fn word(&mut self, kind: &str, known: &[&str]) -> Result<String, Diagnostic> {
        let at = self.at();
        match self.peek().clone() {
            TokenKind::Word(word) if known.contains(&word.as_str()) => {
                self.step();
                Ok(word)
            }
            TokenKind::Word(word) => Err(Diagnostic::unknown(at, kind, &word, known)),
            _ => {
                Err(self
                    .explain_unexpected(&format!("a {kind} ({})", known.join(", ")), "stands here"))
            }
        }
    }

    /// Parses the next command; `None` for `quit`.
    fn command(&mut self) -> Result<Option<CommandAction>, Diagnostic> {
        if let TokenKind::Word(word) = self.peek()
            && let Some(advice) = language_words::of_the_old_shell(word)
        {
            let what = format!("'{word}' is a command of Filebench 1.4's shell");
            return Err(Diagnostic::new(self.at(), what, advice));
        }
        let word = self.word("command", COMMANDS)?;
        Ok(Some(match word.as_str() {
            "set" => self.set()?,
            "define" => self.define()?,
            "create" => {
                self.word("thing to create", &["files"])?;
                CommandAction::Create
            }
            "run" => CommandAction::Run(self.amount()),
            "psrun" => self.psrun()?,
            "sleep" => {
                let wrong = self.explain_unexpected("a number of seconds", "after sleep");
                CommandAction::Sleep(self.amount().ok_or(wrong)?)
            }
            "echo" => CommandAction::Echo(self.texts("echo")?),
            "system" => CommandAction::System(self.texts("system")?),
            "eventgen" => {
                CommandAction::Events(self.attributes("eventgen", language_words::EVENTS)?)
            }
            "debug" => {
                self.integer("after debug")?;
                CommandAction::Nothing
            }
            "list" => {
                self.word("thing to list", &["fileset", "flowop"])?;
                CommandAction::Nothing
            }
            "enable" => {
                if self.word("thing to enable", &["lathist", "multi"])? == "lathist" {
                    CommandAction::Nothing
                } else {
                    self.attributes("enable multi", &["master", "client"])?;
                    CommandAction::Multi
                }
            }
            "domultisync" => {
                self.attributes("domultisync", &["value"])?;
                CommandAction::Multi
            }
            "quit" => return Ok(None),
            _ => CommandAction::Nothing,
        }))
    }

    fn set(&mut self) -> Result<CommandAction, Diagnostic> {
        let TokenKind::Variable(name) = self.peek().clone() else {
            self.word("setting", &["mode"])?;
            if self.word("mode", &["quit", "nousestats"])? == "nousestats" {
                return Ok(CommandAction::Nothing);
            }
            let end = self.word("end of a run", &["timeout", "alldone", "firstdone"])?;
            return Ok(CommandAction::Mode(match end.as_str() {
                "timeout" => RunEndRule::Timeout,
                "alldone" => RunEndRule::AllDone,
                _ => RunEndRule::FirstDone,
            }));
        };
        self.step();
        self.expect('=', "after the variable")?;
        let call = match (self.peek(), self.tokens.get(self.next + 1).map(|token| &token.kind)) {
            (TokenKind::Word(word), Some(TokenKind::Sign('('))) => Some(word.clone()),
            _ => None,
        };
        let setting = if call.is_some() {
            let random = self.word("kind of variable", &["randvar", "cvar"])? == "randvar";
            self.step();
            let known = if random { language_words::RANDOM } else { language_words::CUSTOM };
            let attributes = self.attributes("variable", known)?;
            self.expect(')', "in the variable")?;
            if random {
                VariableSetting::Random(attributes)
            } else {
                VariableSetting::Custom(attributes)
            }
        } else {
            let mut factors = vec![self.value("after '='")?];
            while self.accept('*') {
                factors.push(self.value("after '*'")?);
            }
            VariableSetting::Product(factors)
        };
        Ok(CommandAction::Set(name, setting))
    }

    fn define(&mut self) -> Result<CommandAction, Diagnostic> {
        let at = self.at();
        let known = ["file", "fileset", "process", "flowop", "randvar"];
        match self.word("thing to define", &known)?.as_str() {
            "file" => {
                Ok(CommandAction::Files(true, self.attributes("file", language_words::FILES)?))
            }
            "fileset" => {
                Ok(CommandAction::Files(false, self.attributes("fileset", language_words::FILES)?))
            }
            "randvar" => {
                let mut attributes = self.attributes("randvar", language_words::RANDOM)?;
                let name = attributes.get("name").map(|name| name.value.clone());
                let Some(AstValue::Variable(name)) = name else {
                    return Err(Diagnostic::new(
                        at,
                        "randvar without a name",
                        "write name=$variable",
                    ));
                };
                attributes.list.retain(|attribute| attribute.name != "name");
                Ok(CommandAction::Set(name, VariableSetting::Random(attributes)))
            }
            "process" => {
                let attributes = self.attributes("process", language_words::PROCESS)?;
                let threads = self.block(Self::thread, "process")?;
                Ok(CommandAction::Process(attributes, threads))
            }
            _ => {
                let attributes = self.attributes("flowop", language_words::COMPOSITE)?;
                let name = match attributes.get("name").map(|name| &name.value) {
                    Some(AstValue::Text(name)) => name.clone(),
                    _ => {
                        return Err(Diagnostic::new(
                            at,
                            "flowop without a name",
                            "write name=WORD",
                        ));
                    }
                };
                let flowops = self.block(Self::flowop, "flowop")?;
                self.composites.insert(name);
                Ok(CommandAction::Composite(attributes, flowops))
            }
        }
    }

    /// Parses `{ item ... }`, not empty.
    fn block<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, Diagnostic>,
        place: &str,
    ) -> Result<Vec<T>, Diagnostic> {
        self.expect('{', &format!("after the attributes of the {place}"))?;
        let mut items = vec![item(self)?];
        while !self.accept('}') {
            if self.peek() == &TokenKind::End {
                return Err(self.explain_unexpected("'}'", &format!("inside a {place}")));
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn thread(&mut self) -> Result<AstThread, Diagnostic> {
        self.word("part of a process", &["thread"])?;
        Ok(AstThread {
            attributes: self.attributes("thread", language_words::THREAD)?,
            flowops: self.block(Self::flowop, "thread")?,
        })
    }

    fn flowop(&mut self) -> Result<AstFlowop, Diagnostic> {
        self.word("part of a thread", &["flowop"])?;
        let at = self.at();
        let kind = match self.peek().clone() {
            TokenKind::Word(word) if self.composites.contains(&word) => {
                self.step();
                word
            }
            TokenKind::Word(word) if language_words::FLOWOPS.contains(&word.as_str()) => {
                self.step();
                word
            }
            _ => {
                let mut own: Vec<String> = self.composites.iter().cloned().collect();
                own.sort_unstable();
                let own = own.iter().map(String::as_str);
                let known: Vec<&str> = language_words::FLOWOPS.iter().copied().chain(own).collect();
                self.word("flowop", &known)?
            }
        };
        Ok(AstFlowop { at, kind, attributes: self.attributes("flowop", language_words::FLOWOP)? })
    }

    /// Parses `a=v, b, c=v`, perhaps none.
    fn attributes(&mut self, place: &str, known: &[&str]) -> Result<AstAttributes, Diagnostic> {
        let mut found = AstAttributes { at: self.at(), list: Vec::new(), locals: Vec::new() };
        if !matches!(self.peek(), TokenKind::Word(_) | TokenKind::Variable(_))
            || self.starts_command(known)
        {
            return Ok(found);
        }
        loop {
            let at = self.at();
            if let TokenKind::Variable(name) = self.peek().clone() {
                if place != "flowop" {
                    return Err(self.explain_unexpected("an attribute", &format!("in a {place}")));
                }
                self.step();
                let value = if self.accept('=') { Some(self.value("after '='")?) } else { None };
                found.locals.push((name, value));
            } else {
                let name = self.word(&format!("attribute of a {place}"), known)?;
                let value = if self.accept('=') {
                    self.value(&format!("after '{name}='"))?
                } else {
                    AstValue::Boolean(true)
                };
                found.list.push(AstAttribute { at, name, value });
            }
            if !self.accept(',') {
                return self.no_comma_missing(place, known).map(|()| found);
            }
        }
    }

    /// Returns whether no attributes follow: the next word is a keyword and no attribute.
    fn starts_command(&self, known: &[&str]) -> bool {
        let equals = matches!(
            self.tokens.get(self.next + 1).map(|token| &token.kind),
            Some(TokenKind::Sign('='))
        );
        matches!(self.peek(), TokenKind::Word(word) if !equals && !known.contains(&word.as_str()))
    }

    /// Refuses an attribute right after another: its comma was forgotten.
    fn no_comma_missing(&self, place: &str, known: &[&str]) -> Result<(), Diagnostic> {
        match self.peek() {
            TokenKind::Word(word) if known.contains(&word.as_str()) => {
                Err(self.explain_unexpected("',' between attributes", &format!("in a {place}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the next word is a command at the begin of a line.
    fn is_next_command(&self) -> bool {
        let last = self.next.checked_sub(1).map(|last| self.tokens[last].at.line);
        let begins = last.is_some_and(|line| line < self.at().line);
        begins && matches!(self.peek(), TokenKind::Word(word) if COMMANDS.contains(&word.as_str()))
    }

    fn value(&mut self, place: &str) -> Result<AstValue, Diagnostic> {
        if self.is_next_command() {
            return Err(self.explain_unexpected("a value", place));
        }
        let value = match self.peek().clone() {
            TokenKind::Integer(number) => AstValue::Integer(number),
            TokenKind::Word(word) if word == "true" => AstValue::Boolean(true),
            TokenKind::Word(word) if word == "false" => AstValue::Boolean(false),
            TokenKind::Word(text) | TokenKind::Text(text) => {
                if text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
                    return Err(self.explain_unexpected("a number without sign", place));
                }
                AstValue::Text(text)
            }
            TokenKind::Variable(name) => AstValue::Variable(name),
            TokenKind::Sign('{') => return self.table(),
            TokenKind::Sign(_) | TokenKind::End => {
                return Err(self.explain_unexpected("a value", place));
            }
        };
        self.step();
        Ok(value)
    }

    /// Parses `{{percent, low, high}, ...}`
    fn table(&mut self) -> Result<AstValue, Diagnostic> {
        self.expect('{', "in a table")?;
        let mut rows = Vec::new();
        loop {
            self.expect('{', "in a table")?;
            let percent = self.integer("in a table")?;
            self.expect(',', "in a table's row")?;
            let low = self.integer("in a table")?;
            self.expect(',', "in a table's row")?;
            let high = self.integer("in a table")?;
            self.expect('}', "after a table's row")?;
            rows.push([percent, low, high]);
            if !self.accept(',') {
                self.expect('}', "after a table")?;
                return Ok(AstValue::Table(rows));
            }
        }
    }

    fn integer(&mut self, place: &str) -> Result<u64, Diagnostic> {
        match *self.peek() {
            TokenKind::Integer(number) => {
                self.step();
                Ok(number)
            }
            _ => Err(self.explain_unexpected("a number", place)),
        }
    }

    /// Parses a number or variable, if one follows.
    fn amount(&mut self) -> Option<AstValue> {
        let value = match self.peek().clone() {
            TokenKind::Integer(number) => AstValue::Integer(number),
            TokenKind::Variable(name) => AstValue::Variable(name),
            _ => return None,
        };
        self.step();
        Some(value)
    }

    /// Parses `psrun [[-]PERIOD [N]]`; the period only prints.
    fn psrun(&mut self) -> Result<CommandAction, Diagnostic> {
        let signed = match self.peek() {
            TokenKind::Word(word) if word.starts_with('-') => Some(word.clone()),
            _ => None,
        };
        if let Some(word) = signed {
            if word[1..].parse::<u32>().is_err() {
                return Err(self.explain_unexpected("a period in seconds", "after psrun"));
            }
            self.step();
        } else if self.amount().is_none() {
            return Ok(CommandAction::Run(None));
        }
        Ok(CommandAction::Run(self.amount()))
    }

    fn texts(&mut self, place: &str) -> Result<String, Diagnostic> {
        let mut all = String::new();
        while let TokenKind::Text(text) = self.peek().clone() {
            self.step();
            all.push_str(&text);
        }
        if all.is_empty() {
            return Err(self.explain_unexpected("\"text\"", &format!("after {place}")));
        }
        Ok(all)
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
