//! Checks the Rust layouts of the headers in `bpf/` with a C compiler.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A structure as Rust has it.
#[derive(Debug)]
pub(crate) struct StructLayout {
    /// Name of the structure in the BPF programs.
    pub(crate) name: &'static str,
    /// Size of the structure, and of all its members, bytes.
    pub(crate) size: usize,
    pub(crate) of_members: usize,
    /// Members with their offsets and sizes, bytes.
    pub(crate) members: Vec<(&'static str, usize, usize)>,
}

/// Defines layouts of structures, each with its name in C, its members and their types.
macro_rules! layouts {
    ($($name:ident = $c_name:literal { $($field:ident: $type:ty,)+ })+) => {
        vec![$($crate::layout_check::StructLayout {
            name: $c_name,
            size: size_of::<$name>(),
            of_members: 0 $(+ size_of::<$type>())+,
            members: vec![$((
                stringify!($field),
                std::mem::offset_of!($name, $field),
                size_of::<$type>(),
            )),+],
        }),+]
    };
}
pub(crate) use layouts;

/// Fails unless the header has these structures, without padding, and these constants.
pub(crate) fn agree(header: &str, layouts: &[StructLayout], numbers: &[(&str, usize)]) {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("layouts.c");
    let mut text = format!(
        "#include <stddef.h>\ntypedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32;\n\
         typedef unsigned long long u64;\n#include \"{header}\"\n",
    );
    for StructLayout { name, size, of_members, members } in layouts {
        assert_eq!(size, of_members, "struct {name}");
        let _ = writeln!(text, "_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");");
        for (member, offset, size) in members {
            let member = member.trim_end_matches('_');
            let _ = writeln!(
                text,
                "_Static_assert(offsetof(struct {name}, {member}) == {offset} && \
                 sizeof(((struct {name} *)0)->{member}) == {size}, \"{name}.{member}\");"
            );
        }
    }
    for (name, value) in numbers {
        let _ = writeln!(text, "_Static_assert({name} == {value}, \"{name}\");");
    }
    fs::write(&source, text).unwrap();
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf"))
        .arg(&source)
        .output()
        .expect("a C compiler, which building needs anyway");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
