//! The headers that a module is built against, and the package that brings them.

use std::path::PathBuf;

use crate::{Error, MachinePaths};

/// The headers of `kernel`: `/lib/modules/VERSION/build`, wherever that points.
///
/// # Errors
/// [`Error::NoModules`] for the running kernel if it takes none; [`Error::NoSuchKernel`] if it is not
/// installed; [`Error::NoHeaders`] with the command that installs them.
pub fn find(machine: &MachinePaths, kernel: &str) -> Result<PathBuf, Error> {
    let installed = installed(machine);
    let is_running = !kernel.is_empty() && kernel == machine.running_kernel();
    if is_running && !machine.has("/proc/modules") {
        return Err(Error::NoModules);
    }
    if kernel.contains('/') || !(is_running || installed.iter().any(|version| version == kernel)) {
        return Err(Error::NoSuchKernel { version: kernel.to_owned(), installed });
    }
    let looked = machine.path(format!("/lib/modules/{kernel}/build"));
    // A kernel's package brings the link, and its headers' package what it points to.
    if looked.join("Makefile").exists() {
        return Ok(looked);
    }
    Err(Error::NoHeaders { version: kernel.to_owned(), looked, install: package(machine, kernel) })
}

/// The kernels in /lib/modules, sorted.
fn installed(machine: &MachinePaths) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(machine.path("/lib/modules")) else {
        return Vec::new();
    };
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The command that installs the headers of `kernel` here.
fn package(machine: &MachinePaths, kernel: &str) -> String {
    match Family::of(machine) {
        Family::Debian => format!("apt install linux-headers-{kernel}"),
        Family::Fedora => format!("dnf install kernel-devel-{kernel}"),
        Family::Suse => "zypper install kernel-default-devel".to_owned(),
        Family::Arch => "pacman -S linux-headers".to_owned(),
        Family::Other => format!(
            "your package manager for the headers: linux-headers-{kernel} on Debian and Ubuntu, \
             kernel-devel-{kernel} on Fedora"
        ),
    }
}

/// The command that installs make and a compiler here.
pub(super) fn tools(machine: &MachinePaths) -> String {
    match Family::of(machine) {
        Family::Debian => "apt install make gcc",
        Family::Fedora => "dnf install make gcc",
        Family::Suse => "zypper install make gcc",
        Family::Arch => "pacman -S base-devel",
        Family::Other => "your package manager for make and gcc",
    }
    .to_owned()
}

/// Distributions that name and install packages alike.
enum Family {
    Debian,
    Fedora,
    Suse,
    Arch,
    Other,
}

impl Family {
    /// Reads `ID` and `ID_LIKE` of os-release(5).
    fn of(machine: &MachinePaths) -> Self {
        let text = machine
            .text("/etc/os-release")
            .or_else(|| machine.text("/usr/lib/os-release"))
            .unwrap_or_default();
        let words = text
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
            .flat_map(|value| value.trim_matches(['"', '\'']).split(' '));
        for word in words {
            match word {
                "debian" | "ubuntu" => return Self::Debian,
                "fedora" | "rhel" | "centos" => return Self::Fedora,
                "suse" | "opensuse" => return Self::Suse,
                "arch" => return Self::Arch,
                _ => {}
            }
        }
        Self::Other
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn refusal(os_release: &str) -> String {
        let tree = tempfile::tempdir().unwrap();
        for dir in ["etc", "lib/modules/6.1.0-18-amd64"] {
            fs::create_dir_all(tree.path().join(dir)).unwrap();
        }
        fs::write(tree.path().join("etc/os-release"), os_release).unwrap();
        let machine = MachinePaths::at(tree.path().into());
        find(&machine, "6.1.0-18-amd64").unwrap_err().to_string()
    }

    #[test]
    fn missing_headers_name_the_distribution_s_package() {
        for (os_release, command) in [
            ("ID=debian\n", "apt install linux-headers-6.1.0-18-amd64"),
            (
                "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
                "apt install linux-headers-6.1.0-18-amd64",
            ),
            ("ID=fedora\n", "dnf install kernel-devel-6.1.0-18-amd64"),
            ("ID='rocky'\nID_LIKE=\"rhel centos fedora\"\n", "dnf install"),
            ("ID=plan9\n", "your package manager"),
        ] {
            let text = refusal(os_release);
            assert!(text.contains(command) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn a_kernel_that_is_not_installed_is_not_a_matter_of_headers() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("lib/modules/6.1.0-18-amd64")).unwrap();
        let machine = MachinePaths::at(tree.path().into());
        for wrong in ["6.9", "", "../../etc"] {
            let text = find(&machine, wrong).unwrap_err().to_string();
            assert!(text.contains("there are 6.1.0-18-amd64"), "{text}");
        }
    }
}
