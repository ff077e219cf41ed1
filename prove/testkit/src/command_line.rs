//! Check of a command line's consistency.

use std::collections::HashSet;

use clap::{Arg, ArgGroup, Command};

/// Asserts that no command has two arguments or groups of one name. clap checks that only if it is compiled with debug
/// assertions, unlike tests in the release profile.
///
/// # Panics
/// Where one has.
pub fn assert_names_are_unique(mut command: Command) {
    command.build();
    let mut open = vec![&command];
    while let Some(command) = open.pop() {
        let arguments = command.get_arguments().map(Arg::get_id);
        let groups = command.get_groups().map(ArgGroup::get_id);
        let mut names = HashSet::new();
        for name in arguments.chain(groups) {
            let is_new = names.insert(name);
            assert!(is_new, "`{}` has two of `{name}`", command.get_name());
        }
        open.extend(command.get_subcommands());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: [&'static str; 2]) -> Command {
        let below = Command::new("below").args(names.map(Arg::new));
        Command::new("above").subcommand(below)
    }

    #[test]
    fn other_names() {
        assert_names_are_unique(of(["one", "two"]));
    }

    #[test]
    #[should_panic(expected = "one")]
    fn one_name_twice() {
        assert_names_are_unique(of(["one", "one"]));
    }
}
