//! Kernels that luc.ko has not been tested on, and kernels without type information.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{STABLE, succeed};
use crate::module::{Parts, SOURCES};

/// The module's sources with a line of one file changed.
fn changed(folder: &str, file: &str, from: &str, to: &str) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(folder)
        .join("luc");
    fs::create_dir_all(&copy).expect("directory");
    for entry in fs::read_dir(SOURCES).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let name = path.file_name().expect("a name");
            let mut text = fs::read_to_string(&path).expect("a text");
            if name == file {
                assert_eq!(text.matches(from).count(), 1, "{file}: {from}");
                text = text.replace(from, to);
            }
            fs::write(copy.join(name), text).expect("written");
        }
    }
    copy
}

#[test]
fn a_kernel_that_was_not_tested_is_refused_unless_allowed() {
    let line = "#define LUC_LAST_TESTED KERNEL_VERSION(";
    let sources = changed(
        "untested",
        "compat.h",
        &format!("{line}6, 12, 255)"),
        &format!("{line}6, 0, 255)"),
    );
    let Some(parts) = Parts::of(STABLE, &sources) else {
        return;
    };
    succeed(&parts.vm("
prepare
if insmod luc.ko 2>/dev/null; then echo 'an untested kernel was taken'; exit 1; fi
[[ ! -e /sys/kernel/luc ]]
message 'luc: luc.ko has not been tested on kernel 6.1.'
message 'allow_untested=1'
insmod luc.ko allow_untested=1
[[ $(cat /sys/kernel/luc/kernel) == untested && -e $journal/policy ]]
rmmod luc
finish
"));
}

#[test]
fn a_kernel_without_type_information_is_told_of() {
    let call = "luc_lookup(\"bpf_find_btf_id\")";
    let none = "luc_lookup(\"luc_no_such_function\")";
    let sources = changed("no-types", "layout.c", call, none);
    let Some(parts) = Parts::of(STABLE, &sources) else {
        return;
    };
    succeed(&parts.vm("
prepare
insmod luc.ko
[[ $(cat /sys/kernel/luc/layout) == unchecked ]]
message 'luc: warning: this kernel has no type information'
rmmod luc
finish
"));
}
