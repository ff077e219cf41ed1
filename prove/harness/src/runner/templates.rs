//! Templates and expressions of a part's `[run]`.

use std::path::Path;
use std::process::{Command, Stdio};

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Found};
use serde_json::{Map, Value};

use crate::error::EvaluateError;
use crate::harness::{directory_bytes, elements};
use crate::reports::{of_disk, reports, summary};

/// Variables that templates and expressions see.
pub(super) type Variables = Map<String, Value>;

#[derive(Debug)]
pub(super) struct Templates {
    part: &'static str,
    environment: Environment<'static>,
}

impl Templates {
    pub(super) fn new(part: &'static str) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_function("json", |text: &str| -> Result<Found, Error> {
            let parsed: Result<Value, _> = serde_json::from_str(text);
            parsed.map(|value| Found::from_serialize(&value)).map_err(|error| wrong(&error))
        });
        environment.add_function("number", |text: &str| -> Result<f64, Error> {
            let end = |c: char| c.is_whitespace() || c == '/' || c == ',';
            let word = text.trim_start().split(end).next().unwrap_or_default();
            word.parse().map_err(|_| wrong(&format!("no number begins '{text}'")))
        });
        environment.add_function("read", |path: &str| std::fs::read_to_string(path).ok());
        environment.add_function("bytes", |path: &str| {
            directory_bytes(Path::new(path)).map_err(|error| wrong(&error))
        });
        environment.add_function("have", |program: &str| {
            let mut command = Command::new(program);
            command.arg("--version").stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        });
        environment.add_function("pairs", |text: &str| -> Vec<Vec<String>> {
            let pairs = text.lines().filter_map(|line| line.split_once(": "));
            pairs.map(|(name, value)| vec![name.to_owned(), value.to_owned()]).collect()
        });
        environment.add_function("on_disk", |report: Found, device: &str| {
            json_of(&report).map(|report| Found::from_serialize(of_disk(&report, device)))
        });
        environment.add_function("reports", |folder: &str| {
            let all = reports(Path::new(folder));
            all.map(|all| Found::from_serialize(&all)).map_err(|error| wrong(&error))
        });
        environment.add_function("summary", |reports: Found, device: &str| {
            let all = json_of(&reports)?;
            Ok::<_, Error>(Found::from_serialize(summary(elements(&all), device)))
        });
        Self { part, environment }
    }

    pub(super) fn fill(&self, text: &str, with: &Variables) -> Result<String, EvaluateError> {
        self.environment.render_str(text, with).map_err(|error| self.error(text, &error))
    }

    pub(super) fn eval(&self, expression: &str, with: &Variables) -> Result<Value, EvaluateError> {
        let failed = |error: Error| self.error(expression, &error);
        let found = self.environment.compile_expression(expression).map_err(failed)?;
        let found = found.eval(with).map_err(failed)?;
        if found.is_undefined() {
            return Err(self.error(expression, &ErrorKind::UndefinedError));
        }
        serde_json::to_value(&found).map_err(|error| self.error(expression, &error))
    }

    pub(super) fn is_true(
        &self,
        expression: &str,
        with: &Variables,
    ) -> Result<bool, EvaluateError> {
        let found = self.eval(expression, with)?;
        Ok(!matches!(found, Value::Null | Value::Bool(false)) && found != "")
    }

    fn error(&self, text: &str, reason: &dyn std::fmt::Display) -> EvaluateError {
        let text = text.trim().lines().next().unwrap_or_default();
        EvaluateError::Run { part: self.part, reason: format!("`{text}`: {reason:#}") }
    }
}

fn json_of(value: &Found) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| wrong(&error))
}

fn wrong(what: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.to_string())
}

/// Splits a command line into words. What is in single quotes is one word.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut is_open, mut is_quoted) = (false, false);
    for c in line.chars() {
        is_quoted ^= c == '\'';
        if c.is_whitespace() && !is_quoted {
            is_open = false;
            continue;
        }
        if !is_open {
            words.push(String::new());
            is_open = true;
        }
        if c != '\''
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables(value: Value) -> Variables {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn figures_are_found_in_what_programs_say() {
        let templates = Templates::new("part");
        let with = variables(json!({
            "stdout": "{\"jobs\": [{\"read\": {\"iops\": 7.5}}]}",
            "tps": "latency = 3 ms\ntps = 2034.5 (without initial connection time)\n",
            "said": "holds: 3\nnothing\nstate: a: b\n",
        }));
        let of = |expression: &str| templates.eval(expression, &with).expect(expression);
        assert_eq!(of("json(stdout).jobs[0].read.iops"), json!(7.5));
        assert_eq!(of("number((tps|split('tps = ')|list)[-1])"), json!(2034.5));
        assert_eq!(of("pairs(said)"), json!([["holds", "3"], ["state", "a: b"]]));
        assert_eq!(of("read('/no/such/file')"), Value::Null);
        assert!(of("have('sh')").as_bool() == Some(true) && of("have('no-such')") == json!(false));
        let failed = templates.eval("json(stdout).none", &with).expect_err("it is not there");
        assert!(failed.to_string().contains("prove/parts/part.toml"), "{failed}");
        assert!(templates.eval("number('x')", &with).is_err());
    }

    #[test]
    fn words_in_quotes_stay_together() {
        assert_eq!(words(" a  'b c' d'e f'\n''"), ["a", "b c", "de f", ""]);
    }
}
