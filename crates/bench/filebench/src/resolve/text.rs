//! The texts of `echo` and `system`, with their variables.

use super::super::ast::AstValue;
use super::super::drawn_numbers::WorkloadNumber;
use super::super::plan::{PlanText, TextPart};
use super::scope::{VariableBinding, VariableScope};

impl VariableScope {
    /// Fills `text` with the values of its variables. An unknown variable stays as text. A variable whose value is one
    /// of `paths`, the filesets' paths, stands for the directory where the files really are.
    pub(super) fn expand(&self, text: &str, paths: &[String]) -> PlanText {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            let (before, after) = rest.split_at(dollar);
            rest = &after[1..];
            if let Some(escaped) = before.strip_suffix('\\') {
                plain.push_str(escaped);
                plain.push('$');
                continue;
            }
            plain.push_str(before);
            let (name, left) = variable(rest);
            match self.bound(name) {
                Some(VariableBinding::Plain(AstValue::Text(path))) if paths.contains(path) => {
                    parts.push(TextPart::Plain(std::mem::take(&mut plain)));
                    parts.push(TextPart::Directory);
                }
                Some(VariableBinding::Plain(AstValue::Text(text))) => plain.push_str(text),
                Some(
                    VariableBinding::Plain(AstValue::Integer(number))
                    | VariableBinding::Number(WorkloadNumber::Fixed(number)),
                ) => plain.push_str(&number.to_string()),
                Some(VariableBinding::Plain(AstValue::Boolean(value))) => {
                    plain.push_str(&value.to_string())
                }
                _ => {
                    plain.push('$');
                    continue;
                }
            }
            rest = left;
        }
        plain.push_str(rest);
        parts.push(TextPart::Plain(plain.replace("\\n", "\n")));
        PlanText(parts)
    }
}

/// Splits `text` into the variable's name at its begin, with or without braces, and the rest.
fn variable(text: &str) -> (&str, &str) {
    if let Some((name, rest)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
        return (name, rest);
    }
    let end = text
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_their_values_and_the_path_is_the_directory() {
        let mut scope = VariableScope::default();
        scope.give("dir", &AstValue::Text("/tmp".to_owned()));
        scope.give("n1", &AstValue::Integer(7));
        let text = scope.expand("ls $dir/set ${n1} $none \\$n1", &["/tmp".to_owned()]);
        let plain = |text: &str| TextPart::Plain(text.to_owned());
        assert_eq!(text.0, [plain("ls "), TextPart::Directory, plain("/set 7 $none $n1")]);
    }
}
