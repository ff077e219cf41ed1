//! Programs written byte by byte, so that no compiler is needed, and some real ones.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use tempfile::{NamedTempFile, TempDir};

use super::super::program::program_with_path;
use super::super::{Gateability, InspectError, Privilege, program};

const GLIBC: &str = "/lib64/ld-linux-x86-64.so.2";

/// A minimal 64-bit little-endian program: header, PT_INTERP and PT_NOTE segments, two sections.
struct Elf<'a> {
    machine: u16,
    loader: Option<&'a str>,
    note: Option<&'a str>,
    section: Option<&'a str>,
}

impl Elf<'_> {
    const NATIVE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

    fn new() -> Self {
        Self { machine: Self::NATIVE, loader: Some(GLIBC), note: None, section: None }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut segments: Vec<(u32, Vec<u8>)> = Vec::new();
        if let Some(loader) = self.loader {
            segments.push((3, [loader.as_bytes(), b"\0"].concat()));
        }
        if let Some(name) = self.note {
            let mut note = Vec::new();
            note.extend((name.len() as u32 + 1).to_le_bytes());
            note.extend(4_u32.to_le_bytes());
            note.extend(4_u32.to_le_bytes());
            note.extend(name.as_bytes());
            note.resize(note.len().next_multiple_of(4).max(16), 0);
            note.extend(b"\x01\x02\x03\x04");
            segments.push((4, note));
        }
        let names = format!("\0{}\0", self.section.unwrap_or(".text")).into_bytes();
        let headers_end = 64 + 56 * segments.len();
        let data_len: usize = segments.iter().map(|(_, data)| data.len()).sum();
        let names_at = headers_end + data_len;
        let sections_at = (names_at + names.len()).next_multiple_of(8);

        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(16, 0);
        out.extend(3_u16.to_le_bytes()); // ET_DYN
        out.extend(self.machine.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.extend([0; 8]);
        out.extend(64_u64.to_le_bytes());
        out.extend((sections_at as u64).to_le_bytes());
        out.extend([0; 4]);
        for half in [64, 56, segments.len() as u16, 64, 2, 1] {
            out.extend(half.to_le_bytes());
        }
        let mut at = headers_end as u64;
        for (kind, data) in &segments {
            out.extend(kind.to_le_bytes());
            out.extend(4_u32.to_le_bytes());
            for word in [at, at, at, data.len() as u64, data.len() as u64, 4] {
                out.extend(word.to_le_bytes());
            }
            at += data.len() as u64;
        }
        for (_, data) in &segments {
            out.extend(data);
        }
        out.extend(&names);
        out.resize(sections_at, 0);
        out.extend([0; 64]);
        out.extend(1_u32.to_le_bytes()); // name
        out.extend(3_u32.to_le_bytes()); // SHT_STRTAB
        for word in [0, 0, names_at as u64, names.len() as u64, 0, 1, 0] {
            out.extend(word.to_le_bytes());
        }
        out
    }
}

fn file_of(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn inspect(bytes: &[u8]) -> Gateability {
    program(file_of(bytes).path()).unwrap()
}

fn script(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_program_of_this_machine_and_glibc_is_gateable() {
    assert_eq!(inspect(&Elf::new().bytes()), Gateability::Gateable);
    let this = program(&std::env::current_exe().unwrap()).unwrap();
    assert!(this.is_gateable(), "{this:?}");
    assert_eq!(this.reason(), None);
}

#[test]
fn the_others_say_why_not() {
    let gateability = inspect(&Elf { loader: None, ..Elf::new() }.bytes());
    assert_eq!(gateability, Gateability::Static);
    assert_eq!(
        gateability.reason().unwrap(),
        "it is linked statically, so LD_PRELOAD cannot reach its fsync"
    );
    let of_loader = |loader: &'static str| {
        let loader = Some(loader);
        inspect(&Elf { loader, ..Elf::new() }.bytes())
    };
    assert!(of_loader("/lib/ld-musl-x86_64.so.1").is_gateable());
    let other = of_loader("/system/bin/linker64");
    assert_eq!(other, Gateability::ForeignLibc { loader: "/system/bin/linker64".into() });
    assert!(other.needs_notifier());
    for go in [
        Elf { note: Some("Go"), ..Elf::new() },
        Elf { loader: None, note: Some("Go"), ..Elf::new() },
        Elf { section: Some(".go.buildinfo"), ..Elf::new() },
        Elf { loader: None, section: Some(".note.go.buildid"), ..Elf::new() },
    ] {
        assert_eq!(inspect(&go.bytes()), Gateability::Go);
    }
    let gateability = inspect(&Elf { machine: 40, ..Elf::new() }.bytes());
    let architecture = "32-bit ARM".to_owned();
    assert_eq!(gateability, Gateability::ForeignArchitecture { architecture });
    for other in [&b""[..], b"\x7fELF", b"MZ", b"echo no first line"] {
        assert_eq!(inspect(other), Gateability::NotElf);
    }
    let mut object_file = Elf::new().bytes();
    object_file[16] = 1; // ET_REL
    assert_eq!(inspect(&object_file), Gateability::NotElf);
}

#[test]
fn a_script_is_what_its_interpreter_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(&folder, "plain", "#!/bin/sh -e\n");
    assert!(program(&path).unwrap().is_gateable());

    let fixed = folder.path().join("fixed");
    fs::write(&fixed, Elf { loader: None, ..Elf::new() }.bytes()).unwrap();
    fs::set_permissions(&fixed, Permissions::from_mode(0o755)).unwrap();
    let path = script(&folder, "by-env", "#!/usr/bin/env fixed\n");
    let gateability = program_with_path(&path, Some(folder.path().as_os_str())).unwrap();
    assert_eq!(
        gateability.reason().unwrap(),
        format!(
            "it is a script, and of its interpreter {} holds: it is linked statically, so LD_PRELOAD cannot reach its fsync",
            fixed.display()
        )
    );
    assert_eq!(
        gateability,
        Gateability::Script { interpreter: fixed, gateability: Box::new(Gateability::Static) }
    );
}

#[test]
fn scripts_that_cannot_run_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(&folder, "lost", "#!/no/such/shell\n");
    let error = program(&path).unwrap_err();
    assert!(matches!(error, InspectError::NoInterpreter { .. }), "{error}");

    let itself = folder.path().join("itself");
    let path = script(&folder, "itself", &format!("#!{}\n", itself.display()));
    assert!(matches!(program(&path), Err(InspectError::TooDeep(_))));

    assert!(matches!(program(folder.path()), Err(InspectError::IsDirectory(_))));
    assert!(matches!(program(Path::new("/dev/null")), Err(InspectError::NotAFile(_))));
    assert!(matches!(program(Path::new("/no/such")), Err(InspectError::Io { .. })));
}

#[test]
fn a_compiler_s_static_program_is_static() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("a.c");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    for flag in ["-static", "-static-pie"] {
        let out = folder.path().join("a.out");
        let cc = Command::new("cc").arg(flag).arg("-o").arg(&out).arg(&source).output();
        if cc.is_ok_and(|output| output.status.success()) {
            assert_eq!(program(&out).unwrap(), Gateability::Static, "{flag}");
        } else {
            luc_testkit::skipped!("no C compiler here that links with {flag}");
        }
    }
}

#[test]
fn added_privileges_are_told_unless_they_add_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    fs::write(&path, Elf::new().bytes()).unwrap();
    let set_mode = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    set_mode(0o4755);
    assert_eq!(program(&path).unwrap(), Gateability::Gateable, "set-user-ID to oneself");
    if !rustix::process::getuid().is_root() {
        luc_testkit::skipped!("only root can give a program to another user");
        return;
    }
    if let Err(error) = std::os::unix::fs::chown(&path, Some(65534), Some(65534)) {
        luc_testkit::skipped!("cannot give a program to another user here: {error}");
        return;
    }
    for (mode, expected) in [
        (0o4755, Gateability::SetId(Privilege::User)),
        (0o2755, Gateability::SetId(Privilege::Group)),
        (0o2745, Gateability::Gateable),
        (0o0755, Gateability::Gateable),
    ] {
        set_mode(mode);
        assert_eq!(program(&path).unwrap(), expected, "{mode:o}");
    }
}

/// Only of a script an answer may be an error: its interpreter is missing.
fn takes(bytes: &[u8]) {
    let answer = program(file_of(bytes).path());
    assert!(answer.is_ok() || bytes.starts_with(b"#!"), "{answer:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), keep in 0_usize..24) {
        takes(&bytes);
        takes(&[b"#!", &bytes[..]].concat());
        let mut elf = Elf::new().bytes();
        elf.truncate(keep);
        elf.extend(bytes);
        takes(&elf);
    }

    #[test]
    fn takes_damaged_programs(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        length in any::<prop::sample::Index>(),
        sound in any::<bool>(),
    ) {
        let mut elf =
            Elf { note: Some("Go"), section: Some(".go.buildinfo"), ..Elf::new() }.bytes();
        for (at, value) in damage {
            let at = at.index(elf.len());
            elf[at] = value;
        }
        if !sound {
            elf.truncate(length.index(elf.len()));
        }
        takes(&elf);
    }
}
