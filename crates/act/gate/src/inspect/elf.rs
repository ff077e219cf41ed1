//! The three facts of an ELF file that decide about preloading: its machine, its loader, and whether Go's linker made
//! it.
//!
//! Files are read in bounded pieces and never trusted: a file that does not parse is [`ElfImage::Broken`].

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};

#[cfg(target_pointer_width = "64")]
type Header = elf::FileHeader64<Endianness>;
#[cfg(target_pointer_width = "32")]
type Header = elf::FileHeader32<Endianness>;

/// An address or size in [`Header`].
type Word = <Header as FileHeader>::Word;

/// The machine that this library was built for, as ELF numbers it.
const OUR_MACHINE: elf::Machine = if cfg!(target_arch = "x86_64") {
    elf::EM_X86_64
} else if cfg!(target_arch = "aarch64") {
    elf::EM_AARCH64
} else if cfg!(target_arch = "x86") {
    elf::EM_386
} else if cfg!(target_arch = "arm") {
    elf::EM_ARM
} else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
    elf::EM_RISCV
} else if cfg!(target_arch = "powerpc64") {
    elf::EM_PPC64
} else if cfg!(target_arch = "s390x") {
    elf::EM_S390
} else if cfg!(target_arch = "loongarch64") {
    elf::EM_LOONGARCH
} else {
    elf::EM_NONE
};
const OUR_CLASS: u8 = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
const OUR_DATA: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

/// Maximum length of an interpreter's name: Linux refuses longer ones (PATH_MAX).
const MAX_INTERPRETER_BYTES: Word = 4096;
/// Maximum size of notes that are read; those of programs are below 200 bytes.
const MAX_NOTE_BYTES: Word = 4096;
/// Maximum number of sections that are read; programs have some 40, hostile ones may have more.
const MAX_SECTIONS: u32 = 1024;

/// The kind of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ElfImage {
    /// A program for another machine, with the machine's name.
    Foreign(String),
    Native {
        /// Loader that it names in PT_INTERP; a static program has none.
        loader: Option<PathBuf>,
        /// Whether Go's linker made it.
        go: bool,
    },
    /// No ELF program, or a damaged one.
    Broken,
}

/// Reads the headers of `file`. Never panics, whatever the content.
pub(super) fn read(file: &File) -> ElfImage {
    let cache = ReadCache::new(file);
    read_image(&cache).unwrap_or(ElfImage::Broken)
}

fn read_image<'data>(data: impl ReadRef<'data>) -> Option<ElfImage> {
    let start = data.read_bytes_at(0, 20).ok()?;
    if !start.starts_with(&elf::ELFMAG) {
        return None;
    }
    let (class, encoding) = (*start.get(4)?, *start.get(5)?);
    let number = start.get(18..20)?.first_chunk()?;
    let machine = elf::Machine(if encoding == 2 {
        u16::from_be_bytes(*number)
    } else {
        u16::from_le_bytes(*number)
    });
    if (class, encoding, machine) != (OUR_CLASS, OUR_DATA, OUR_MACHINE) {
        return Some(ElfImage::Foreign(name_of_machine(class, machine)));
    }

    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if !matches!(header.e_type(endian), elf::ET_EXEC | elf::ET_DYN) {
        return None;
    }
    if header.phnum(endian, data).ok()? >= u32::from(elf::PN_XNUM) {
        return None;
    }
    let segments = header.program_headers(endian, data).ok()?;
    let mut loader = None;
    for segment in segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        let size = segment.p_filesz(endian);
        if size > MAX_INTERPRETER_BYTES {
            return None;
        }
        let name = segment.interpreter(endian, data).ok()??;
        loader = Some(PathBuf::from(OsStr::from_bytes(name)));
    }
    let go = segments.iter().any(|segment| is_go_note(segment, endian, data))
        || has_go_section(header, endian, data);
    Some(ElfImage::Native { loader, go })
}

/// Go's linker leaves its build's id in a note named `Go`, also when section names are stripped.
fn is_go_note<'data>(
    segment: &<Header as FileHeader>::ProgramHeader,
    endian: Endianness,
    data: impl ReadRef<'data>,
) -> bool {
    let size = segment.p_filesz(endian);
    if segment.p_type(endian) != elf::PT_NOTE || size > MAX_NOTE_BYTES {
        return false;
    }
    let Ok(Some(mut notes)) = segment.notes(endian, data) else {
        return false;
    };
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"Go" {
            return true;
        }
    }
    false
}

fn has_go_section<'data>(header: &Header, endian: Endianness, data: impl ReadRef<'data>) -> bool {
    if !header.shnum(endian, data).is_ok_and(|count| count <= MAX_SECTIONS) {
        return false;
    }
    let Ok(sections) = header.section_headers(endian, data) else {
        return false;
    };
    let Ok(names) = header.section_strings(endian, data, sections) else {
        return false;
    };
    sections.iter().any(|section| {
        section
            .name(endian, names)
            .is_ok_and(|name| matches!(name, b".go.buildinfo" | b".note.go.buildid"))
    })
}

fn name_of_machine(class: u8, machine: elf::Machine) -> String {
    let name = match machine {
        elf::EM_X86_64 if class == 1 => "x32",
        elf::EM_X86_64 => "x86-64",
        elf::EM_386 => "32-bit x86",
        elf::EM_AARCH64 => "AArch64",
        elf::EM_ARM => "32-bit ARM",
        elf::EM_RISCV => "RISC-V",
        elf::EM_PPC64 => "PowerPC 64",
        elf::EM_S390 => "IBM Z",
        elf::EM_LOONGARCH => "LoongArch",
        elf::Machine(number) => return format!("machine number {number}"),
    };
    name.to_owned()
}
