//! Errors of the command line, in one line as all others.

use clap::error::ErrorKind;

/// What clap found wrong, as one line that ends with the next step; `None` if it is no error but help or
/// the version, which clap prints itself.
pub(crate) fn one_line(error: &clap::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        _ => Some(squeeze(&error.render().to_string())),
    }
}

/// Everything before the usage, and the command whose help explains it.
fn squeeze(text: &str) -> String {
    let (message, usage) = text.split_once("\nUsage: ").unwrap_or((text, ""));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentences: Vec<String> = message
        .lines()
        .filter(|line| !line.starts_with("For more information"))
        .map(|line| {
            words(line)
                .trim_start_matches("error: ")
                .replace("tip: ", "")
                .to_string()
        })
        .filter(|line| !line.is_empty())
        .collect();
    let command: Vec<&str> = usage
        .split_whitespace()
        .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let help = if command.is_empty() {
        "luc".to_owned()
    } else {
        command.join(" ")
    };
    format!(
        "{}; see `{help} --help`",
        sentences.join("; ").replace(":; ", ": ")
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn line(words: &[&str]) -> String {
        let error = Cli::command().try_get_matches_from(words).unwrap_err();
        one_line(&error).unwrap()
    }

    #[test]
    fn a_wrong_option_names_itself_and_the_right_help() {
        let text = line(&["luc", "run", "--polcy", "auto", "--", "true"]);
        assert!(!text.contains('\n'), "{text}");
        assert!(
            text.contains("--polcy") && text.contains("--policy"),
            "{text}"
        );
        assert!(text.ends_with("see `luc run --help`"), "{text}");
    }

    #[test]
    fn a_missing_argument_is_named() {
        let text = line(&["luc", "run"]);
        assert!(!text.contains('\n') && text.contains("COMMAND"), "{text}");
    }

    #[test]
    fn help_is_no_error() {
        let error = Cli::command()
            .try_get_matches_from(["luc", "--help"])
            .unwrap_err();
        assert_eq!(one_line(&error), None);
    }
}
