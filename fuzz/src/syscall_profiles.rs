//! Profiles of system calls, and what runtimes say of containers, made of any bytes.

use luc_service::containers::seccomp_profile::{ProfileError, derive};
use luc_service::containers::container_state::OciContainer;
use serde_json::Value;

/// The calls that a profile of luc's notifies.
const NOTIFIED: [&str; 2] = ["fsync", "fdatasync"];

/// Reads any text in place of a profile. It is refused in one line that steers no terminal, or a profile is made of
/// it. That profile says the same of every other call, and is refused as a source itself. In place of a container's
/// state the text is refused, or the container's name is a valid file name.
pub fn profile(data: &[u8]) {
    if let Ok(container) = OciContainer::read(data) {
        let name = container.unit();
        assert!(!name.contains(['/', '\0']), "{name:?}");
    }
    let text = String::from_utf8_lossy(data);
    let made = match derive(&text) {
        Ok(made) => made,
        Err(error) => {
            let said = error.to_string();
            return assert!(!said.contains(char::is_control), "{said:?}");
        }
    };
    let of: Value = serde_json::from_str(&text).expect("a profile is JSON");
    let others = |profile| {
        let mut all = actions(profile);
        all.retain(|(call, _)| !NOTIFIED.contains(&call.as_str()));
        all
    };
    assert_eq!(others(&of), others(&made));
    for call in NOTIFIED {
        let mut all = actions(&made);
        all.retain(|(name, _)| name == call);
        let is_notified = |(_, action): &(String, String)| action == "SCMP_ACT_NOTIFY";
        assert!(!all.is_empty() && all.iter().all(is_notified), "{all:?}");
    }
    let again = derive(&made.to_string());
    assert!(matches!(again, Err(ProfileError::Notifies(_))), "{again:?}");
}

/// The calls that a profile's rules name, and what is done about them, in their order.
fn actions(profile: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = Vec::new();
    for rule in list(&profile["syscalls"]) {
        let names = [rule["name"].clone()].into_iter().chain(list(&rule["names"]));
        let names = names.map(|name| text(&name)).filter(|name| !name.is_empty());
        all.extend(names.map(|name| (name, text(&rule["action"]))));
    }
    all
}
