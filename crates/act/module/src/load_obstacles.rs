//! Finds obstacles to loading `luc.ko` into the running kernel, and changes nothing.

use crate::{Error, MachinePaths};

/// EFI's own variable, with four bytes of attributes before its value.
const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// Checks that a module could work here.
///
/// # Errors
/// The first reason against it: [`Error::NoModules`], [`Error::ModulesDisabled`], [`Error::NoFtrace`],
/// [`Error::FtraceDisabled`], [`Error::NoJbd2`].
pub fn check(machine: &MachinePaths) -> Result<(), Error> {
    if !machine.has("/proc/modules") {
        return Err(Error::NoModules);
    }
    if machine.text("/proc/sys/kernel/modules_disabled").as_deref() == Some("1") {
        return Err(Error::ModulesDisabled);
    }
    match machine.text("/proc/sys/kernel/ftrace_enabled").as_deref() {
        None => return Err(Error::NoFtrace),
        Some("0") => return Err(Error::FtraceDisabled),
        Some(_) => {}
    }
    // Made when jbd2 starts, be it a module or built in.
    if !machine.has("/proc/fs/jbd2") {
        return Err(Error::NoJbd2);
    }
    Ok(())
}

/// Reason why the running kernel takes only signed modules; `None` if it takes any.
pub fn requires_signature(machine: &MachinePaths) -> Option<String> {
    let reason = if let Some(mode) = lockdown(machine) {
        format!("the kernel is locked down ({mode})")
    } else if machine.text("/sys/module/module/parameters/sig_enforce").as_deref() == Some("Y") {
        "the kernel enforces module signatures (module.sig_enforce)".to_owned()
    } else {
        return None;
    };
    Some(if has_secure_boot(machine) {
        format!("{reason}, since Secure Boot is on")
    } else {
        reason
    })
}

/// The lockdown mode, if there is one: the word in brackets of `none [integrity] confidentiality`.
fn lockdown(machine: &MachinePaths) -> Option<String> {
    let modes = machine.text("/sys/kernel/security/lockdown")?;
    let (_, rest) = modes.split_once('[')?;
    let (mode, _) = rest.split_once(']')?;
    (mode != "none").then(|| mode.to_owned())
}

fn has_secure_boot(machine: &MachinePaths) -> bool {
    std::fs::read(machine.path(SECURE_BOOT)).is_ok_and(|bytes| bytes.last() == Some(&1))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn each_obstacle_is_told_before_the_next() {
        let tree = tempfile::tempdir().unwrap();
        let machine = MachinePaths::at(tree.path().into());
        assert!(matches!(check(&machine), Err(Error::NoModules)));
        write(tree.path(), "proc/modules", "");
        write(tree.path(), "proc/sys/kernel/modules_disabled", "1\n");
        assert!(matches!(check(&machine), Err(Error::ModulesDisabled)));
        write(tree.path(), "proc/sys/kernel/modules_disabled", "0\n");
        assert!(matches!(check(&machine), Err(Error::NoFtrace)));
        write(tree.path(), "proc/sys/kernel/ftrace_enabled", "0\n");
        assert!(matches!(check(&machine), Err(Error::FtraceDisabled)));
        write(tree.path(), "proc/sys/kernel/ftrace_enabled", "1\n");
        assert!(matches!(check(&machine), Err(Error::NoJbd2)));
        fs::create_dir_all(tree.path().join("proc/fs/jbd2")).unwrap();
        assert!(check(&machine).is_ok());
    }

    #[test]
    fn signatures_are_required_by_lockdown_or_by_the_module_loader() {
        let tree = tempfile::tempdir().unwrap();
        let machine = MachinePaths::at(tree.path().into());
        assert_eq!(requires_signature(&machine), None);
        write(tree.path(), "sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
        assert_eq!(requires_signature(&machine), None);
        write(tree.path(), "sys/module/module/parameters/sig_enforce", "Y\n");
        let why = requires_signature(&machine).unwrap();
        assert!(why.contains("sig_enforce") && !why.contains("Secure Boot"), "{why}");
        write(tree.path(), "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        write(tree.path(), &SECURE_BOOT[1..], [6, 0, 0, 0, 1]);
        let why = requires_signature(&machine).unwrap();
        assert!(why.contains("(integrity)") && why.contains("Secure Boot"), "{why}");
    }
}
