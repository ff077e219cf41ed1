//! A profile of system calls for containers, made from their runtime's: the same rules, but the calls that the gate
//! holds are notified.
//!
//! Both forms are read: that of the OCI's runtime specification (`linux.seccomp`), and that of Podman's and Docker's
//! files, whose rules may have conditions. Parts that luc does not know stay as they are.

use luc_notify::seccomp_filter::NAMES;
use luc_units::plain;
use serde_json::{Map, Value, json};

/// Socket at which runtimes hand the listeners of containers over.
pub const SOCKET: &str = "/run/luc/oci.sock";

/// Flag that keeps signals from restarting a held call: Linux 5.19.
pub const FLAG: &str = "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV";

/// Flag that runtimes set where a profile has none.
const USUAL_FLAG: &str = "SECCOMP_FILTER_FLAG_SPEC_ALLOW";

pub(super) const NOTIFY: &str = "SCMP_ACT_NOTIFY";
const ALLOW: &str = "SCMP_ACT_ALLOW";

/// Fields of a profile and of a rule that are read here.
const PROFILE_FIELDS: &[&str] =
    &["defaultAction", "flags", "listenerMetadata", "listenerPath", "syscalls"];
const RULE_FIELDS: &[&str] = &["action", "args", "excludes", "includes", "name", "names"];

/// Reason why no profile is made from another one. The text follows a file's name and a colon.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("it is not JSON ({0}): name a file like /usr/share/containers/seccomp.json")]
    Json(String),
    #[error("{0}: name a profile of seccomp, as /usr/share/containers/seccomp.json is one")]
    Form(String),
    #[error(
        "it notifies a supervisor already ({0}), and the kernel allows one: name the profile that it was made of"
    )]
    Notifies(String),
    #[error(
        "{action} is its action for {call}, so there is nothing to hold: name a profile that allows {call}"
    )]
    Denies { call: &'static str, action: String },
    #[error(
        "its rule for {0} looks at arguments, which a notification would not: name a profile that allows {0}"
    )]
    Arguments(&'static str),
}

/// Makes the profile that notifies from `text`.
///
/// # Errors
/// [`ProfileError`]: `text` is no profile, or one that cannot be changed in this way.
pub fn derive(text: &str) -> Result<Value, ProfileError> {
    let mut profile: Value =
        serde_json::from_str(text).map_err(|error| ProfileError::Json(error.to_string()))?;
    let fields = object(&mut profile, "it", PROFILE_FIELDS)?;
    let default = string(fields, "defaultAction")?.unwrap_or_default();
    if default.is_empty() {
        return Err(form("it has no defaultAction"));
    }
    if default == NOTIFY {
        return Err(ProfileError::Notifies("defaultAction".to_owned()));
    }
    if let Some(path) = string(fields, "listenerPath")?.filter(|path| !path.is_empty()) {
        return Err(ProfileError::Notifies(format!("listenerPath {}", plain(&path))));
    }
    let rules = match fields.remove("syscalls") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(rules)) => rules,
        Some(_) => return Err(form("its syscalls are no list")),
    };
    let rules = notify_calls(rules, &default)?;
    fields.insert("syscalls".to_owned(), Value::Array(rules));
    let flags = flags(fields)?;
    fields.insert("flags".to_owned(), flags);
    fields.insert("listenerPath".to_owned(), SOCKET.into());
    fields.insert("listenerMetadata".to_owned(), "luc".into());
    Ok(profile)
}

/// Changes the rules that let the calls pass.
fn notify_calls(rules: Vec<Value>, default: &str) -> Result<Vec<Value>, ProfileError> {
    let passes = default == ALLOW;
    let mut named: Vec<&str> = Vec::new();
    let mut changed = Vec::new();
    for mut rule in rules {
        let fields = object(&mut rule, "a rule in its syscalls", RULE_FIELDS)?;
        let action = string(fields, "action")?.unwrap_or_default();
        if action == NOTIFY {
            return Err(ProfileError::Notifies(format!("an action is {NOTIFY}")));
        }
        let names = names(fields)?;
        let is_ours = |name: &String| NAMES.contains(&name.as_str());
        let (ours, others): (Vec<String>, Vec<String>) = names.into_iter().partition(is_ours);
        for call in NAMES.iter().filter(|call| ours.contains(&(**call).to_owned())) {
            if action != ALLOW {
                let action = plain(&action);
                return Err(ProfileError::Denies { call, action });
            }
            if !is_empty(fields.get("args")) {
                return Err(ProfileError::Arguments(call));
            }
            named.push(call);
        }
        if ours.is_empty() {
            changed.push(rule);
            continue;
        }
        // Where all is allowed anyway, such a rule says nothing, and its conditions no more.
        let notifies = (!passes).then(|| copy_rule(fields, ours, NOTIFY));
        if !others.is_empty() {
            changed.push(copy_rule(fields, others, ALLOW));
        }
        changed.extend(notifies);
    }
    if passes {
        changed.push(json!({ "names": NAMES, "action": NOTIFY }));
    } else if let Some(call) = NAMES.iter().find(|call| !named.contains(call)) {
        return Err(ProfileError::Denies { call, action: plain(default) });
    }
    Ok(changed)
}

/// Makes a rule like another one, for other names.
fn copy_rule(rule: &Map<String, Value>, names: Vec<String>, action: &str) -> Value {
    let mut rule = rule.clone();
    rule.remove("name");
    rule.insert("names".to_owned(), names.into());
    rule.insert("action".to_owned(), action.into());
    Value::Object(rule)
}

/// The calls of a rule; in older profiles each has one.
fn names(rule: &Map<String, Value>) -> Result<Vec<String>, ProfileError> {
    let mut names: Vec<String> =
        string(rule, "name")?.filter(|name| !name.is_empty()).into_iter().collect();
    names.extend(strings(rule, "names")?.unwrap_or_default());
    Ok(names)
}

/// The flags, with [`FLAG`] added.
fn flags(profile: &Map<String, Value>) -> Result<Value, ProfileError> {
    let mut flags = match strings(profile, "flags")? {
        Some(flags) => flags,
        None => vec![USUAL_FLAG.to_owned()],
    };
    if !flags.iter().any(|flag| flag == FLAG) {
        flags.push(FLAG.to_owned());
    }
    Ok(flags.into())
}

/// The fields of an object. Names in other capitals are refused: Podman and Docker take them, and luc would not have
/// read them.
fn object<'a>(
    value: &'a mut Value,
    what: &str,
    known: &[&str],
) -> Result<&'a mut Map<String, Value>, ProfileError> {
    let Value::Object(fields) = value else {
        return Err(form(&format!("{what} is no object")));
    };
    for name in fields.keys() {
        let is_other = |known: &&str| name.eq_ignore_ascii_case(known) && name != *known;
        if let Some(known) = known.iter().copied().find(is_other) {
            return Err(form(&format!("{what} has '{name}' for '{known}'")));
        }
    }
    Ok(fields)
}

/// A field that is a text, if it is there.
fn string(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, ProfileError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(form(&format!("its {name} is no text"))),
    }
}

/// A field that is a list of texts, if it is there.
fn strings(fields: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, ProfileError> {
    let list = match fields.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(form(&format!("its {name} are no list"))),
    };
    let texts = list.iter().map(|one| one.as_str().map(ToOwned::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    texts.map(Some).ok_or_else(|| form(&format!("one of its {name} is no text")))
}

/// Whether a field is missing or an empty list.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}

fn form(reason: &str) -> ProfileError {
    ProfileError::Form(reason.to_owned())
}

#[cfg(test)]
mod tests;
