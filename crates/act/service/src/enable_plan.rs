//! Makes a unit's drop-in from its settings, or says why it has none. Pure.
//!
//! - `library_way`, `notifier_way`: the two ways, with what each takes from a unit or adds to it.

mod library_way;
mod notifier_way;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use luc_gate::inspect::Gateability;
use serde::Serialize;

pub use notifier_way::SOCKET;

use crate::command_line_words::{CommandLine, CommandLineError, commands};
use crate::unit_file::{self, UnitFile};
use crate::unit_settings::UnitSettings;

/// Way in which the user wants a unit's calls reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestedWay {
    /// The library where it gets into the unit's programs, else notifications.
    #[default]
    Auto,
    Library,
    /// Notifications of system calls.
    Notify,
}

/// Way in which a unit's calls are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateWay {
    /// A library in its programs.
    Library,
    /// Notifications of its system calls.
    Notify,
}

/// UnitFacts that a plan is made from.
#[derive(Clone, Debug, Default)]
pub struct UnitFacts {
    /// The unit's properties, by systemd.
    pub settings: UnitSettings,
    /// Files in the order in which systemd reads them, without luc's own drop-in.
    pub files: Vec<UnitFile>,
    /// Text of luc's own drop-in, if the unit is enabled already. Its additions are in the settings as well.
    pub drop_in: Option<String>,
    /// Programs that the unit starts, as far as they could be looked at.
    pub programs: Vec<(PathBuf, Gateability)>,
    /// Paths and contents of the files with its environment.
    pub environment_files: Vec<(PathBuf, String)>,
    /// Mount points of file systems with a journal that can be shared.
    pub journals: Vec<PathBuf>,
}

/// Parts of luc that are installed, and what this machine can do.
#[derive(Clone, Debug)]
pub struct InstalledTools {
    pub library: PathBuf,
    pub exec: PathBuf,
    /// Reason why there are no notifications here; `None` if there are.
    pub no_notifier: Option<String>,
}

/// Effect of enabling a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnablePlan {
    pub unit: String,
    pub way: GateWay,
    pub why: String,
    pub drop_in: String,
    /// Losses of its sandbox, and changes that users of the service may notice.
    pub notes: Vec<String>,
}

/// Reason why a unit is not enabled. The text begins with what is wrong, and ends with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitRefusal {
    #[error("there is no such unit: `systemctl list-unit-files` lists those that are installed")]
    Unknown,
    #[error("systemd cannot start it (its load state is {0}): see `systemctl status`")]
    NotLoaded(String),
    #[error("only services start programs: name the service that it belongs to")]
    NoService,
    #[error("it starts nothing itself{}", name_them(.0))]
    StartsNothing(Vec<String>),
    #[error("it is luc's own, and synchronizes nothing: name the service that is slow")]
    Own,
    #[error(
        "no file system here has an ext4 journal, so there is nothing to share: leave it as it is"
    )]
    NoJournal,
    #[error("the library does not reach it: {0}")]
    Library(String),
    #[error("its system calls cannot be notified: {0}")]
    Notify(String),
    #[error("its line ExecStart={line} is not understood: {error}; use --reach library")]
    Line { line: String, error: CommandLineError },
}

fn name_them(others: &[String]) -> String {
    match others {
        [] => ": name the service that runs the program (`systemctl list-units --type=service`)"
            .to_owned(),
        [one] => format!(": enable {one}"),
        several => format!(": enable one of {}", several.join(", ")),
    }
}

/// Programs that clean their environment, so that processes below them lose the library. Measured, or seen in their
/// sources.
const CLEANERS: [(&str, &str); 6] = [
    ("master", "Postfix gives its daemons an environment of its own (import_environment)"),
    ("postmulti", "Postfix gives its daemons an environment of its own (import_environment)"),
    ("dovecot", "Dovecot gives its processes an environment of its own (import_environment)"),
    ("pg_ctlcluster", "pg_ctlcluster gives PostgreSQL an environment of its own"),
    ("cron", "cron gives its jobs an environment of their own"),
    ("sshd", "sshd gives its sessions an environment of their own"),
];

impl EnablePlan {
    /// Makes the plan for a unit.
    ///
    /// # Errors
    /// [`UnitRefusal`]
    pub fn of(
        facts: &UnitFacts,
        reach: RequestedWay,
        tools: &InstalledTools,
    ) -> Result<Self, UnitRefusal> {
        refuse_what_starts_nothing(facts)?;
        if facts.journals.is_empty() {
            return Err(UnitRefusal::NoJournal);
        }
        match reach {
            RequestedWay::Library => library_way::plan(facts, tools, "as asked for".to_owned())
                .map_err(|reason| UnitRefusal::Library(format!("{reason}; use --reach notify"))),
            RequestedWay::Notify => notifier_way::plan(facts, tools, "as asked for".to_owned()),
            RequestedWay::Auto => auto(facts, tools),
        }
    }
}

impl UnitFacts {
    /// Whether luc's own drop-in has a line already.
    fn has_line(&self, line: &str) -> bool {
        let text = self.drop_in.as_deref().unwrap_or_default();
        text.lines().any(|own| own == line)
    }

    /// The values of a key in luc's own drop-in.
    fn own_values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let text = self.drop_in.as_deref().unwrap_or_default();
        let value = move |line: &'a str| line.strip_prefix(key)?.strip_prefix('=');
        text.lines().filter_map(value).flat_map(str::split_whitespace)
    }
}

fn auto(facts: &UnitFacts, tools: &InstalledTools) -> Result<EnablePlan, UnitRefusal> {
    let why = match why_no_library(facts) {
        Some(why) => why,
        None => {
            let why = "its programs load libraries".to_owned();
            match library_way::plan(facts, tools, why) {
                Ok(plan) => return Ok(plan),
                Err(reason) => reason,
            }
        }
    };
    notifier_way::plan(facts, tools, why.clone()).map_err(|refusal| match refusal {
        UnitRefusal::Notify(reason) => {
            UnitRefusal::Notify(format!("{reason}; and the library does not reach it, as {why}"))
        }
        other => other,
    })
}

/// Reason why the library does not get into the unit's programs, if they show one.
fn why_no_library(facts: &UnitFacts) -> Option<String> {
    let of_program = |(path, program): &(PathBuf, Gateability)| {
        let reason = program.reason()?;
        Some(format!("of {} holds: {reason}", path.display()))
    };
    let by_name = |path: &PathBuf| {
        let name = path.file_name()?;
        let (_, why) = CLEANERS.iter().find(|(cleaner, _)| name == *cleaner)?;
        Some((*why).to_owned())
    };
    let by_names = || facts.settings.programs().iter().find_map(by_name);
    facts.programs.iter().find_map(of_program).or_else(by_names)
}

fn refuse_what_starts_nothing(facts: &UnitFacts) -> Result<(), UnitRefusal> {
    let settings = &facts.settings;
    match settings.get("LoadState") {
        "loaded" => {}
        "not-found" | "" => return Err(UnitRefusal::Unknown),
        other => return Err(UnitRefusal::NotLoaded(other.to_owned())),
    }
    if !settings.id().ends_with(".service") {
        return Err(UnitRefusal::NoService);
    }
    if settings.id() == "lucd.service" {
        return Err(UnitRefusal::Own);
    }
    let does_nothing =
        |path: &PathBuf| path.file_name().is_some_and(|name| name == "true" || name == ":");
    if settings.programs().iter().all(does_nothing) {
        let services = settings.words("ConsistsOf").filter(|name| name.ends_with(".service"));
        return Err(UnitRefusal::StartsNothing(services.map(ToOwned::to_owned).collect()));
    }
    Ok(())
}

/// The unit's commands as they are written, with their lines.
fn written_commands(facts: &UnitFacts) -> Result<Vec<(String, Vec<CommandLine>)>, UnitRefusal> {
    let of_line = |line: String| match commands(&line) {
        Ok(commands) => Ok((line, commands)),
        Err(error) => Err(UnitRefusal::Line { line, error }),
    };
    unit_file::list(&facts.files, "ExecStart").into_iter().map(of_line).collect()
}

/// Whether a value of a unit file means yes.
fn is_yes(value: &str) -> bool {
    ["yes", "y", "true", "t", "on", "1"].contains(&value.to_ascii_lowercase().as_str())
}

/// First line of each drop-in.
fn heading(unit: &str) -> String {
    format!("# Written by `luc enable`; `luc disable {unit}` removes it.\n")
}

/// The line that allows a unit to execute luc's files, if it may execute only some files.
fn may_execute(facts: &UnitFacts, tools: &InstalledTools, notes: &mut Vec<String>) -> String {
    let settings = &facts.settings;
    let is_below = |path: &&Path, list: &str| {
        let mut folders = settings.words(list).map(|folder| folder.trim_start_matches(['-', '+']));
        folders.any(|folder| path.starts_with(folder))
    };
    let files = [tools.exec.as_path(), tools.library.as_path()];
    let is_own = |path: &Path| facts.own_values("ExecPaths").any(|own| path.starts_with(own));
    let is_barred = |path: &&Path| {
        is_below(path, "NoExecPaths") && (is_own(path) || !is_below(path, "ExecPaths"))
    };
    let mut folders: Vec<String> = files
        .iter()
        .filter(|path| is_barred(path))
        .filter_map(|path| Some(path.parent()?.display().to_string()))
        .collect();
    folders.dedup();
    if folders.is_empty() {
        return String::new();
    }
    notes.push(format!("its processes may execute what is in {}", folders.join(" ")));
    format!("ExecPaths={}\n", folders.join(" "))
}

/// A path as a word of a unit file. [`InstalledTools`] have only paths that need no quotes.
fn word(path: &Path) -> std::path::Display<'_> {
    path.display()
}
