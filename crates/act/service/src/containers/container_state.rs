//! The state of a container, and the part of it that is kept. The runtime sends it when it hands the listener over
//! ("The Container Process State" of the OCI's runtime specification).

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

/// Maximum size of a state. Annotations of Kubernetes may have 256 KiB.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum length of a container's name, which becomes a file's name.
const MAX_NAME_LENGTH: usize = 128;

/// Suffix of the name of a container's figures.
pub const UNIT_SUFFIX: &str = ".container";

/// Metadata that `luc attach` sends instead of a profile's.
pub const ATTACHED: &str = "attached";

/// Name of the file in memory that keeps a container.
const MEMORY_NAME: &str = "luc-container";

/// A container that a listener belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OciContainer {
    /// The runtime's name for it.
    pub id: String,
    /// Its first process, by this system's number; 0 for a process that was started in it later.
    pub process: u32,
    pub bundle: PathBuf,
    /// Metadata of the profile (`listenerMetadata`).
    pub metadata: String,
    /// Cgroup of its first process, below the hierarchy's root; empty if it has none of its own.
    #[serde(default)]
    pub cgroup: String,
}

/// The parts of the sent state that are used here.
#[derive(Debug, Deserialize)]
struct ProcessState {
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    metadata: String,
    state: ContainerState,
}

#[derive(Debug, Deserialize)]
struct ContainerState {
    id: String,
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    bundle: PathBuf,
}

impl OciContainer {
    /// Reads a state, and nothing after it: a runtime may leave the connection open.
    ///
    /// # Errors
    /// It is none, or is too long.
    pub fn read(source: impl Read) -> io::Result<Self> {
        let source = BufReader::new(source.take(MAX_BYTES));
        let mut reader = serde_json::Deserializer::from_reader(source);
        let state = ProcessState::deserialize(&mut reader)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_+.-".contains(c);
        let id = state.state.id;
        if id.is_empty() || id.len() > MAX_NAME_LENGTH || !id.chars().all(is_plain) {
            return Err(io::Error::other(format!(
                "'{}' is no name of a container",
                luc_units::plain(&id)
            )));
        }
        let process = [state.pid, state.state.pid]
            .into_iter()
            .find_map(|pid| u32::try_from(pid).ok().filter(|&pid| pid > 0));
        Ok(Self {
            id,
            process: process.unwrap_or(0),
            bundle: state.state.bundle,
            metadata: state.metadata,
            cgroup: process.and_then(cgroup_of).unwrap_or_default(),
        })
    }

    /// Name of its figures.
    #[must_use]
    pub fn unit(&self) -> String {
        format!("{}{UNIT_SUFFIX}", self.id)
    }

    /// Writes it to a file in memory, which systemd can keep and others can find.
    ///
    /// # Errors
    /// There is no memory.
    pub fn keep(&self) -> io::Result<OwnedFd> {
        let file = memfd_create(MEMORY_NAME, MemfdFlags::CLOEXEC)?;
        rustix::io::pwrite(&file, &serde_json::to_vec(self)?, 0)?;
        Ok(file)
    }

    /// Reads the file of [`keep`](Self::keep).
    #[must_use]
    pub fn kept(file: &OwnedFd) -> Option<Self> {
        Self::kept_at(&PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())))
    }

    fn kept_at(path: &Path) -> Option<Self> {
        let mut text = Vec::new();
        let file = File::open(path).ok()?;
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// The containers that a `lucd` has kept: one for each listener that it serves.
#[must_use]
pub fn kept_by(lucd: u32) -> Vec<OciContainer> {
    let folder = std::fs::read_dir(format!("/proc/{lucd}/fd"));
    let entries = folder.into_iter().flatten().flatten();
    let is_kept = |path: &PathBuf| {
        let link = std::fs::read_link(path).unwrap_or_default();
        link.to_str()
            .and_then(|link| link.strip_prefix("/memfd:"))
            .is_some_and(|name| name.trim_end_matches(" (deleted)") == MEMORY_NAME)
    };
    let mut all: Vec<OciContainer> = entries
        .map(|entry| entry.path())
        .filter(is_kept)
        .filter_map(|path| OciContainer::kept_at(&path))
        .collect();
    all.sort_by_key(|one| (one.id.clone(), one.process == 0, one.process));
    all
}

/// Cgroup of a process, of version 2 or of systemd's hierarchy.
fn cgroup_of(process: u32) -> Option<String> {
    let groups = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let of = |prefix: &str| {
        let mut lines = groups.lines();
        lines.find_map(|line| Some(line.split_once(prefix)?.1.to_owned()))
    };
    // One that this process cannot see, or that all are in, is none of the container's.
    let is_own = |group: &String| !["", "/"].contains(&group.as_str()) && !group.contains("..");
    [of("0::"), of(":name=systemd:")].into_iter().flatten().find(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A state as crun 1.8.1 sends it, and with fields that it is known to leave out or add.
    fn state(more: &serde_json::Value) -> serde_json::Value {
        let mut state = json!({
            "ociVersion": "0.2.0", "fds": ["seccompFd"], "pid": 53, "metadata": "luc",
            "state": { "ociVersion": "0.2.0", "id": "web", "status": "creating", "pid": 53, "bundle": "/b",
                       "annotations": { "a": "b" } }
        });
        for (name, value) in more.as_object().unwrap() {
            state[name] = value.clone();
        }
        state
    }

    #[test]
    fn a_state_is_read_and_nothing_behind_it() {
        let text = format!("{}more", state(&json!({})));
        let mut source = text.as_bytes();
        let container = OciContainer::read(&mut source).unwrap();
        assert_eq!(
            (container.id.as_str(), container.process, container.metadata.as_str()),
            ("web", 53, "luc")
        );
        assert_eq!(container.unit(), "web.container");
        // Of a process that is started in a container that runs crun says less.
        let later = json!({ "pid": 0, "state": { "id": "web", "pid": 0, "bundle": "." } });
        let text = state(&later).to_string();
        assert_eq!(OciContainer::read(text.as_bytes()).unwrap().process, 0);
        let none = json!({ "pid": -1, "state": { "id": "web" } });
        let text = state(&none).to_string();
        assert_eq!(OciContainer::read(text.as_bytes()).unwrap().process, 0);
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for more in [
            json!({ "state": null }),
            json!({ "state": { "id": "" } }),
            json!({ "state": { "id": "../x" } }),
            json!({ "state": { "id": "a\n" } }),
            json!({ "state": { "id": "a".repeat(MAX_NAME_LENGTH + 1) } }),
            json!({ "pid": "53" }),
        ] {
            assert!(OciContainer::read(state(&more).to_string().as_bytes()).is_err(), "{more}");
        }
        let endless = io::repeat(b' ').chain(io::empty());
        assert!(OciContainer::read(endless).is_err());
        let deep = io::repeat(b'[');
        assert!(OciContainer::read(deep).is_err());
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let container = OciContainer {
            id: "web".to_owned(),
            process: std::process::id(),
            bundle: PathBuf::from("/b"),
            metadata: "a \"b\"\n".to_owned(),
            cgroup: "/x".to_owned(),
        };
        let file = container.keep().unwrap();
        assert_eq!(OciContainer::kept(&file).as_ref(), Some(&container));
        assert!(kept_by(std::process::id()).contains(&container));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}", cut in 0..400_usize) {
            let _ = OciContainer::read(text.as_bytes());
            let whole = state(&json!({ "metadata": text })).to_string();
            let cut = cut.min(whole.len());
            prop_assert_eq!(OciContainer::read(&whole.as_bytes()[..cut]).is_ok(), cut == whole.len());
        }
    }
}
