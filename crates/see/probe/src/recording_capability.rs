//! Finds what this kernel and this process can record, by testing for features, not versions.
//!
//! A tracepoint exists if the kernel's type information has the type `btf_trace_<name>`. That of the modules `jbd2`
//! and `ext4` is searched, too. The type also gives the number of the tracepoint's arguments.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::ProbeError;
use crate::tracepoints::{
    EXCHANGE_HOOKS, HOOKS, NETWORK_HOOKS, PERF_SUFFIX, ProgramNeed, TracepointProgram,
};

/// Modules that may hold the journal's tracepoints.
const MODULES: &[&CStr] = &[c"jbd2", c"ext4"];
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Recorded part of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkRecording {
    #[default]
    Nothing,
    /// Connections, messages, packets, and the work of the threads at their ends.
    Messages,
    /// Sums of the times of requests.
    Exchanges,
}

/// Events that can be recorded here.
#[derive(Clone, Debug, Default)]
pub struct RecordingCapability {
    /// Programs that can be loaded.
    pub(crate) hooks: Vec<TracepointProgram>,
    /// Part of the network that they see.
    pub(crate) network: NetworkRecording,
    /// Programs that the kernel has refused.
    refused: Vec<String>,
    /// Events that cannot be recorded, with the reason, one line each.
    pub missing: Vec<String>,
}

impl RecordingCapability {
    /// Detects what the kernel and this process can record, including a part of the network.
    ///
    /// # Errors
    /// When nothing at all can be recorded: no privileges, no BTF, no scheduler tracepoints. Also when messages are
    /// wanted, and cannot be recorded.
    pub fn detect(network: NetworkRecording) -> Result<Self, ProbeError> {
        Self::detect_refusing(network, Vec::new())
    }

    /// Detects as [`detect`](Self::detect), without the programs that the kernel has refused.
    fn detect_refusing(
        network: NetworkRecording,
        refused: Vec<String>,
    ) -> Result<Self, ProbeError> {
        let types = KernelTypes::if_allowed()?;
        let mut found = Self::of(network, refused, |name| types.arguments_of(name))?;
        if !has_visible_addresses() {
            found.missing.push(
                "causes of uninterruptible waits cannot be told: kernel addresses are hidden; \
                 `sysctl kernel.kptr_restrict=0` shows them"
                    .to_owned(),
            );
        }
        if !has_journal() {
            found.missing.push(
                "no file system with a jbd2 journal is mounted: only waits, requests and system calls are recorded"
                    .to_owned(),
            );
        }
        Ok(found)
    }

    /// Returns the capability without program `name`, which the kernel refused at loading; `None` if nothing works
    /// without it.
    pub(crate) fn without(&self, name: &str) -> Option<Self> {
        let mut refused = self.refused.clone();
        if refused.iter().any(|known| known == name) {
            return None;
        }
        refused.push(name.to_owned());
        let is_hook = name.ends_with(PERF_SUFFIX) || self.has(name);
        is_hook.then(|| Self::detect_refusing(self.network, refused).ok()).flatten()
    }

    /// Returns whether the kernel refuses the programs on system calls as perf events.
    pub(crate) fn refuses_perf_events(&self) -> bool {
        self.refused.iter().any(|name| name.ends_with(PERF_SUFFIX))
    }

    /// Detects as [`detect`](Self::detect) on a kernel without these tracepoints.
    #[cfg(test)]
    pub(crate) fn detect_without(
        network: NetworkRecording,
        names: &[&str],
    ) -> Result<Self, ProbeError> {
        let types = KernelTypes::if_allowed()?;
        let there = |name: &str| !names.contains(&name);
        Self::of(network, Vec::new(), |name| {
            there(name).then(|| types.arguments_of(name)).flatten()
        })
    }

    /// Returns the capability with the tracepoints for which `arguments_of` returns a number.
    fn of(
        network: NetworkRecording,
        refused: Vec<String>,
        arguments_of: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, ProbeError> {
        let mut found = Self { network, refused, ..Self::default() };
        found.add(HOOKS, &arguments_of, ProbeError::NoTracepoint)?;
        let of_network = match network {
            NetworkRecording::Nothing => &[],
            NetworkRecording::Messages => NETWORK_HOOKS,
            NetworkRecording::Exchanges => EXCHANGE_HOOKS,
        };
        found.add(of_network, &arguments_of, ProbeError::NoNetwork)?;
        Ok(found)
    }

    /// Adds the possible `hooks`, and a line on what is lost without the others.
    fn add(
        &mut self,
        hooks: &[TracepointProgram],
        arguments_of: &impl Fn(&str) -> Option<u32>,
        refusal: impl Fn(&'static str) -> ProbeError,
    ) -> Result<(), ProbeError> {
        let mut lost: Vec<(&str, Vec<&str>)> = Vec::new();
        let refused = self.refused.clone();
        let is_refused = |name: &str| refused.iter().any(|known| known == name);
        for hook in hooks {
            if hook.instead_of.is_some_and(|name| arguments_of(name).is_some() && !is_refused(name))
            {
                continue;
            }
            match arguments_of(hook.tracepoint) {
                Some(arguments) if arguments >= hook.arguments && !is_refused(hook.name) => {
                    self.hooks.push(*hook);
                }
                Some(_) if is_refused(hook.name) && hook.need != ProgramNeed::Always => {
                    if let ProgramNeed::For(what) = hook.need {
                        self.missing.push(format!(
                            "{what} cannot be recorded: the kernel refuses the program {}",
                            hook.name
                        ));
                    }
                }
                _ => match hook.need {
                    ProgramNeed::Always => return Err(refusal(hook.tracepoint)),
                    ProgramNeed::Extra => {}
                    ProgramNeed::For(what) => {
                        match lost.iter_mut().find(|(known, _)| *known == what) {
                            Some((_, names)) => names.push(hook.tracepoint),
                            None => lost.push((what, vec![hook.tracepoint])),
                        }
                    }
                },
            }
        }
        self.missing.extend(lost.into_iter().map(|(what, names)| {
            format!(
                "{what} cannot be recorded: no tracepoint {}{}",
                names.join(", "),
                if names[0].starts_with("jbd2") || names[0].starts_with("ext4") {
                    " (is an ext4 file system mounted?)"
                } else {
                    " in this kernel"
                }
            )
        }));
        Ok(())
    }

    /// Returns whether the program of this name can be loaded.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.hooks.iter().any(|hook| hook.name == name)
    }
}

/// Returns whether this is a nested user namespace, where the capabilities of root load no BPF programs.
fn is_in_user_namespace() -> bool {
    let everybody = ["0", "0", "4294967295"];
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_whitespace().ne(everybody))
}

/// Returns whether this process has the capabilities that tracing programs need.
fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective >> capability & 1 == 1;
    has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)
}

/// Returns whether `/proc/kallsyms` has addresses and not zeros.
fn has_visible_addresses() -> bool {
    use std::io::Read as _;
    let mut beginning = [0; 4096];
    let length = fs::File::open("/proc/kallsyms")
        .and_then(|mut file| file.read(&mut beginning))
        .unwrap_or(0);
    String::from_utf8_lossy(&beginning[..length]).lines().any(|line| {
        line.split(' ').next().is_some_and(|address| address.bytes().any(|digit| digit != b'0'))
    })
}

fn has_journal() -> bool {
    fs::read_dir("/proc/fs/jbd2").is_ok_and(|mut journals| journals.next().is_some())
}

/// Type information of the kernel and of the modules of interest.
pub(crate) struct KernelTypes(Vec<NonNull<libbpf_sys::btf>>);

impl KernelTypes {
    /// Loads the kernel's types, if there are any and this process may load programs.
    ///
    /// # Errors
    /// No privileges, or only those of a user namespace; no BTF.
    pub(crate) fn if_allowed() -> Result<Self, ProbeError> {
        if !is_privileged() {
            return Err(ProbeError::Privileges);
        }
        if is_in_user_namespace() {
            return Err(ProbeError::UserNamespace);
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(ProbeError::NoBtf);
        }
        Self::load().ok_or(ProbeError::NoBtf)
    }

    fn load() -> Option<Self> {
        // SAFETY: no arguments; the result is ours and freed on drop.
        let kernel = NonNull::new(unsafe { libbpf_sys::btf__load_vmlinux_btf() })?;
        let mut all = Self(vec![kernel]);
        for module in MODULES {
            if !Path::new("/sys/kernel/btf").join(module.to_string_lossy().as_ref()).exists() {
                continue;
            }
            // SAFETY: a valid string, and a base that lives as long as `all`, which frees it last.
            let types =
                unsafe { libbpf_sys::btf__load_module_btf(module.as_ptr(), kernel.as_ptr()) };
            all.0.extend(NonNull::new(types));
        }
        Some(all)
    }

    /// Returns the number of arguments of a tracepoint; `None` if it does not exist.
    pub(crate) fn arguments_of(&self, name: &str) -> Option<u32> {
        let name = CString::new(format!("btf_trace_{name}")).ok()?;
        self.0.iter().find_map(|types| {
            // SAFETY: the types are valid and the name is a string that ends with a zero.
            unsafe {
                let id = libbpf_sys::btf__find_by_name_kind(
                    types.as_ptr(),
                    name.as_ptr(),
                    libbpf_sys::BTF_KIND_TYPEDEF,
                );
                let id = u32::try_from(id).ok()?;
                let pointer = target_of(types.as_ptr(), id)?;
                let function = target_of(types.as_ptr(), pointer)?;
                let function = libbpf_sys::btf__type_by_id(types.as_ptr(), function).as_ref()?;
                // All but the first, which is for the tracepoint's own use.
                (function.info & 0xffff).checked_sub(1)
            }
        })
    }
}

impl Drop for KernelTypes {
    fn drop(&mut self) {
        for types in self.0.iter().rev() {
            // SAFETY: ours, and each freed once; modules before the kernel that they refer to.
            unsafe { libbpf_sys::btf__free(types.as_ptr()) };
        }
    }
}

/// Returns the type that a typedef or pointer refers to.
///
/// # Safety
/// `types` must be valid and `id` one of its typedefs or pointers.
unsafe fn target_of(types: *const libbpf_sys::btf, id: u32) -> Option<u32> {
    // SAFETY: promised by the caller; an unknown id gives a null pointer.
    let found = unsafe { libbpf_sys::btf__type_by_id(types, id) };
    if ptr::eq(found, ptr::null()) {
        return None;
    }
    // SAFETY: not null, and both kinds use this member of the union.
    Some(unsafe { (*found).__bindgen_anon_1.type_ })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_for_tracepoints_is_used_where_they_are_missing() {
        let without = |names: &'static [&'static str]| {
            RecordingCapability::of(NetworkRecording::Messages, Vec::new(), move |name| {
                (!names.contains(&name)).then_some(9)
            })
        };
        let new = without(&[]).unwrap();
        assert!(new.has("sock_send_length") && new.has("tcp_sendmsg_locked"));
        assert!(!new.has("send_enter") && !new.has("send_exit"));
        let linux_6_12 = without(&["tcp_sendmsg_locked"]).unwrap();
        assert!(linux_6_12.has("sock_send_length") && linux_6_12.has("send_enter"));
        assert!(!linux_6_12.has("send_exit"));
        assert_eq!(linux_6_12.missing, new.missing);
        let linux_6_1 = without(&["tcp_sendmsg_locked", "sock_send_length"]).unwrap();
        assert!(linux_6_1.has("send_enter") && linux_6_1.has("send_exit"));
        assert_eq!(
            linux_6_1.missing,
            [
                "sends by io_uring and splice cannot be recorded: no tracepoint sock_send_length in this kernel"
            ]
        );
        let none = without(&["tcp_rcv_space_adjust"]).unwrap_err().to_string();
        assert!(none.contains("--fleet") && none.contains("tcp_rcv_space_adjust"), "{none}");
        assert_eq!(none.lines().count(), 1);
    }

    #[test]
    fn sums_of_exchanges_need_one_end_of_sends_only() {
        let without = |names: &'static [&'static str]| {
            RecordingCapability::of(NetworkRecording::Exchanges, Vec::new(), move |name| {
                (!names.contains(&name)).then_some(9)
            })
            .unwrap()
        };
        let new = without(&[]);
        assert!(new.has("exchange_send") && !new.has("exchange_sent"));
        let linux_6_12 = without(&["tcp_sendmsg_locked"]);
        assert!(linux_6_12.has("exchange_sent") && !linux_6_12.has("exchange_send"));
        assert_eq!(linux_6_12.missing, new.missing);
        let linux_6_1 = without(&["tcp_sendmsg_locked", "sock_send_length"]);
        assert_eq!(
            linux_6_1.missing,
            [
                "how long requests take cannot be recorded: no tracepoint sock_send_length in this kernel"
            ]
        );
    }

    #[test]
    fn a_refused_program_is_left_out_alone() {
        let without = |name: &str| {
            RecordingCapability::of(NetworkRecording::Messages, vec![name.to_owned()], |_| Some(9))
        };
        let all =
            RecordingCapability::of(NetworkRecording::Messages, Vec::new(), |_| Some(9)).unwrap();
        let one = without("jbd2_run_stats").unwrap();
        assert_eq!(one.hooks.len(), all.hooks.len() - 1);
        assert_eq!(
            one.missing,
            ["journal commits cannot be recorded: the kernel refuses the program jbd2_run_stats"]
        );
        // One that only adds to what others see.
        assert_eq!(without("cgroup_attach_task").unwrap().missing, [""; 0]);
        // Another one stands in for it.
        let sent = without("tcp_sendmsg_locked").unwrap();
        assert!(sent.has("send_enter") && !sent.has("tcp_sendmsg_locked"));
        assert!(without("sched_switch").is_err());
        let called = without("sys_enter_perf").unwrap();
        assert!(called.refuses_perf_events() && called.has("sys_enter"));
    }

    #[test]
    fn tracepoints_are_found_with_their_arguments() {
        let Some(types) = KernelTypes::load() else {
            luc_testkit::skipped!("no BTF here");
            return;
        };
        assert_eq!(types.arguments_of("sched_waking"), Some(1));
        assert_eq!(types.arguments_of("sys_enter"), Some(2));
        assert_eq!(types.arguments_of("no_such_tracepoint"), None);
    }
}
