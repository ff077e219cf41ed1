//! Kernels that luc.ko has not been tested on, known bad ones, ones with other functions, and ones without type
//! information.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{STABLE, succeed};
use crate::module_under_test::{ModuleTestParts, SOURCES};

/// Copies the module's sources with a line of one file changed.
fn changed(folder: &str, file: &str, from: &str, to: &str) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder).join("luc");
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
fn a_kernel_that_was_not_tested_is_told_of() {
    let line = "#define LUC_LAST_TESTED KERNEL_VERSION(";
    let sources =
        changed("untested", "compat.h", &format!("{line}7, 3, 255)"), &format!("{line}6, 0, 255)"));
    let Some(parts) = ModuleTestParts::of(STABLE, &sources) else {
        return;
    };
    succeed(&parts.vm("
prepare
insmod luc.ko
message 'luc: warning: luc.ko has been tested on kernels 6.1 to 6.0, not on 6.1.'
[[ $(cat /sys/kernel/luc/kernel) == untested && -e $journal/policy ]]
rmmod luc
finish
"));
}

#[test]
fn a_kernel_that_is_known_to_be_bad_is_refused() {
    let none = "{ 0, 0, NULL },";
    let this = "{ KERNEL_VERSION(6, 1, 0), KERNEL_VERSION(6, 1, 255), \"a test\" },";
    let sources = changed("bad", "compat.h", none, &format!("{this}\n\t{none}"));
    let Some(parts) = ModuleTestParts::of(STABLE, &sources) else {
        return;
    };
    succeed(&parts.vm("
prepare
if insmod luc.ko 2>/dev/null; then echo 'a bad kernel was taken'; exit 1; fi
[[ ! -e /sys/kernel/luc ]]
message 'is known not to stand luc.ko (a test)'
finish
"));
}

/// The running kernel's jbd2 seems to have another argument than the headers say.
#[test]
fn a_function_with_other_arguments_is_refused() {
    let known = "\"jbd2_log_wait_commit\", \"4\", { \"*journal_s\", \"4\" }";
    let other = "\"jbd2_log_wait_commit\", \"4\", { \"*journal_s\", \"8\" }";
    let sources = changed("arguments", "layout.c", known, other);
    let Some(parts) = ModuleTestParts::of(STABLE, &sources) else {
        return;
    };
    succeed(&parts.vm("
prepare
if insmod luc.ko 2>/dev/null; then echo 'an unknown jbd2 was taken'; exit 1; fi
message 'luc: function jbd2_log_wait_commit has other arguments here'
finish
"));
}

#[test]
fn a_kernel_without_type_information_is_told_of() {
    let call = "luc_lookup(\"bpf_find_btf_id\")";
    let none = "luc_lookup(\"luc_no_such_function\")";
    let sources = changed("no-types", "layout.c", call, none);
    let Some(parts) = ModuleTestParts::of(STABLE, &sources) else {
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
