//! Mistakes on a command line, in one line like all other errors.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};

/// Describes the mistake that clap found in `words`, as one line that ends with the next step.
pub(crate) fn mistake(
    error: &clap::Error,
    command: &clap::Command,
    words: impl Iterator<Item = OsString>,
) -> String {
    let (message, hint) = (message(error), hint(error));
    format!("{message}{hint}; see `{} --help`", subcommand(command, words))
}

/// Names the error from the parts that clap gives.
fn message(error: &clap::Error) -> String {
    let part = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let argument = part(ContextKind::InvalidArg);
    let value = part(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument => format!("unexpected argument '{argument}'"),
        ErrorKind::InvalidSubcommand => {
            format!("unknown command '{}'", part(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => format!("missing {argument}"),
        ErrorKind::NoEquals => format!("'{argument}' takes its value after '='"),
        ErrorKind::InvalidValue if value.is_empty() => format!("'{argument}' needs a value"),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let reason = error.source().map(|reason| format!(": {reason}"));
            let reason = reason.unwrap_or_default();
            format!("invalid value '{value}' for '{argument}'{reason}")
        }
        ErrorKind::TooManyValues => format!("unexpected value '{value}' for '{argument}'"),
        ErrorKind::ArgumentConflict => match part(ContextKind::PriorArg) {
            other if other == argument => format!("'{argument}' is given more than once"),
            other => format!("'{argument}' cannot be used with {other}"),
        },
        kind => kind.to_string(),
    }
}

/// The name that clap suggests, or the possible values.
fn hint(error: &clap::Error) -> String {
    let part = |kind| error.get(kind).map(ToString::to_string);
    let meant = part(ContextKind::SuggestedArg)
        .or_else(|| part(ContextKind::SuggestedSubcommand))
        .or_else(|| part(ContextKind::SuggestedValue))
        .map(|name| format!("; did you mean '{name}'?"));
    let values = || {
        part(ContextKind::ValidValue)
            .filter(|values| !values.is_empty())
            .map(|values| format!("; possible values: {values}"))
    };
    let tip = || part(ContextKind::Suggested).map(|tip| format!("; {tip}"));
    meant.or_else(values).or_else(tip).unwrap_or_default()
}

/// The subcommand that `words` name, with the names before it.
fn subcommand(mut command: &clap::Command, words: impl Iterator<Item = OsString>) -> String {
    let mut names = vec![command.get_name()];
    for word in words.skip(1) {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => break,
        }
        names.push(command.get_name());
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::{Arg, ArgAction, Command};

    /// A program with options like those of `luc`.
    fn program() -> Command {
        let time =
            |text: &str| luc_units::parse_duration_ns(text).map_err(|error| error.to_string());
        let run = Command::new("run")
            .arg(
                Arg::new("policy")
                    .long("policy")
                    .value_name("POLICY")
                    .value_parser(["auto", "off"]),
            )
            .arg(Arg::new("max-wait").long("max-wait").value_name("TIME").value_parser(time))
            .arg(
                Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).conflicts_with("policy"),
            )
            .arg(
                Arg::new("command")
                    .value_name("COMMAND")
                    .num_args(1..)
                    .trailing_var_arg(true)
                    .required(true),
            );
        let bench = Command::new("bench").subcommand(Command::new("commit"));
        Command::new("luc").subcommands([run, bench, Command::new("explain")])
    }

    #[test]
    fn each_mistake_is_one_line_with_the_next_step() {
        for (words, line) in [
            (
                "luc run --polcy auto -- true",
                "unexpected argument '--polcy'; did you mean '--policy'?; see `luc run --help`",
            ),
            ("luc run", "missing <COMMAND>...; see `luc run --help`"),
            ("luc expain", "unknown command 'expain'; did you mean 'explain'?; see `luc --help`"),
            (
                "luc run --policy of -- true",
                "invalid value 'of' for '--policy <POLICY>'; did you mean 'off'?; see `luc run --help`",
            ),
            (
                "luc run --max-wait x -- true",
                "invalid value 'x' for '--max-wait <TIME>': duration 'x' is not a number with a unit: write it \
                 like 100us, 6ms or 1.5s; see `luc run --help`",
            ),
            (
                "luc run --policy off --policy off -- true",
                "'--policy <POLICY>' is given more than once; see `luc run --help`",
            ),
            (
                "luc run --policy off --quiet -- true",
                "'--policy <POLICY>' cannot be used with --quiet; see `luc run --help`",
            ),
            (
                "luc bench commit --frob",
                "unexpected argument '--frob'; see `luc bench commit --help`",
            ),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            let command = program();
            let error = command.clone().try_get_matches_from(&words).unwrap_err();
            let found = mistake(&error, &command, words.iter().map(OsString::from));
            assert_eq!(found, line);
        }
    }
}
