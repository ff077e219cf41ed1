//! Checks that a refused export says why in one line, and leaves nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use luc_testkit::fleet::PlantedFleet;

use crate::{PlantedExport, program};

#[test]
fn nothing_is_left_of_what_cannot_be_written() {
    let planted = PlantedExport::planted(PlantedFleet { back_ends: 2, requests: 20, waits: 20 });
    let refused = |out: &str, trace: &str, reason: &str| {
        let mut export = program();
        export.current_dir(planted.folder()).args(["export", "--out", out, trace]);
        let output = export.output().expect("run");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.lines().count() == 1 && errors.contains(reason), "{errors}");
    };
    let trace = planted.traces[0].display().to_string();
    let list = || fs::read_dir(planted.folder()).expect("listed").count();
    let before = list();
    refused("traces", &trace, "it is there already; name a directory that is not");
    refused("none/tables", &trace, "none: ");
    refused("tables", "nowhere", "nowhere: ");
    // A file of the traces is damaged.
    let damaged = fs::read_dir(&planted.traces[0]).expect("listed").flatten();
    let damaged = damaged.map(|entry| entry.path());
    let damaged = damaged.filter(|path| path.display().to_string().contains("/wait-"));
    let damaged = damaged.last().expect("a file");
    let mut bytes = fs::read(&damaged).expect("read");
    bytes[100] ^= 1;
    fs::write(&damaged, bytes).expect("written");
    refused("tables", &trace, "damaged");
    assert_eq!(list(), before);
}

#[test]
fn who_may_not_read_the_traces_may_not_read_the_tables() {
    let planted = PlantedExport::planted(PlantedFleet { back_ends: 2, requests: 300, waits: 20 });
    fs::set_permissions(&planted.traces[1], Permissions::from_mode(0o750)).expect("changed");
    planted.export();
    let about = fs::metadata(planted.tables()).expect("tables");
    assert_eq!(about.permissions().mode() & 0o027, 0, "{:o}", about.permissions().mode());
}

#[test]
fn a_full_disk_for_the_answer_leaves_nothing() {
    let planted = PlantedExport::planted(PlantedFleet { back_ends: 2, requests: 300, waits: 20 });
    let full = fs::File::options().write(true).open("/dev/full").expect("opened");
    let mut export = program();
    export.args(["export", "--out"]).arg(planted.tables()).arg(&planted.traces[0]).stdout(full);
    assert_eq!(export.status().expect("run").code(), Some(2));
    assert!(!planted.tables().exists());
}
