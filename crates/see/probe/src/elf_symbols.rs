//! Functions and constants of an ELF file of this machine, by its symbols.
//!
//! A process may run any file, so none is trusted. A file is read, not mapped, because a mapped file that is truncated
//! meanwhile would end the reader. A file that is too large, or does not parse, has no symbols.

use std::fs::File;

use object::elf::{self, PT_LOAD, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, SectionIndex};

type Header = elf::FileHeader64<Endianness>;
type Symbol = elf::Sym64<Endianness>;
type NameOf<'n> = &'n dyn Fn(&Symbol) -> Option<Vec<u8>>;

/// Maximum number of sections that are read: programs have some 40.
const MAX_SECTIONS: usize = 1024;
/// Maximum size of a table of symbols that is read, bytes: a browser's has 50 MB.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// Returns the demangled name of the function at an offset of a file; `None` without a name.
pub(crate) fn function_at(file: &File, offset: u64) -> Option<String> {
    let cache = ReadCache::new(file);
    let image = Image::of(&cache)?;
    let address = image.address_of(offset)?;
    let mut name = None;
    image.each_symbol(|symbol, name_of| {
        let is_function = [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_type());
        if is_function && symbol.st_value(image.endian) == address {
            name = name_of(symbol).filter(|name| !name.is_empty());
        }
        name.is_none()
    });
    name.map(|name| demangled(&String::from_utf8_lossy(&name)))
}

/// Reads the bytes of the constant of this name.
pub(crate) fn constant<const N: usize>(file: &File, name: &str) -> Option<[u8; N]> {
    let cache = ReadCache::new(file);
    let image = Image::of(&cache)?;
    let mut address = None;
    image.each_symbol(|symbol, name_of| {
        let is_like_it = symbol.st_type() == STT_OBJECT && symbol.st_size(image.endian) == N as u64;
        if is_like_it && name_of(symbol).is_some_and(|other| other == name.as_bytes()) {
            address = Some(symbol.st_value(image.endian));
        }
        address.is_none()
    });
    let offset = image.offset_of(address?)?;
    cache.read_bytes_at(offset, N as u64).ok()?.try_into().ok()
}

/// Headers of a file.
struct Image<'d, R> {
    data: R,
    header: &'d Header,
    endian: Endianness,
}

impl<'d, R: ReadRef<'d>> Image<'d, R> {
    fn of(data: R) -> Option<Self> {
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        Some(Self { data, header, endian })
    }

    /// Returns the loaded parts: offset in the file, address, and length in the file.
    fn loaded(&self) -> impl Iterator<Item = [u64; 3]> {
        let endian = self.endian;
        let headers = self.header.program_headers(endian, self.data).unwrap_or_default().iter();
        let loaded = headers.filter(move |header| header.p_type(endian) == PT_LOAD);
        loaded.map(move |header| {
            [header.p_offset(endian), header.p_vaddr(endian), header.p_filesz(endian)]
        })
    }

    fn address_of(&self, offset: u64) -> Option<u64> {
        self.loaded().find_map(|[begin, address, bytes]| {
            let within = offset.checked_sub(begin).filter(|within| *within < bytes)?;
            address.checked_add(within)
        })
    }

    fn offset_of(&self, address: u64) -> Option<u64> {
        self.loaded().find_map(|[offset, begin, bytes]| {
            let within = address.checked_sub(begin).filter(|within| *within < bytes)?;
            offset.checked_add(within)
        })
    }

    /// Visits the symbols while `visit` returns true. `visit` can read a symbol's name from the file.
    fn each_symbol(&self, mut visit: impl FnMut(&Symbol, NameOf<'_>) -> bool) {
        let (endian, data) = (self.endian, self.data);
        let Ok(sections) = self.header.sections(endian, data) else {
            return;
        };
        for (number, section) in sections.iter().enumerate().take(MAX_SECTIONS) {
            let is_table = [SHT_SYMTAB, SHT_DYNSYM].contains(&section.sh_type(endian));
            if !is_table || section.sh_size(endian) > MAX_TABLE_BYTES {
                continue;
            }
            let Ok(Some(symbols)) = section.symbols(endian, data, &sections, SectionIndex(number))
            else {
                continue;
            };
            let strings = symbols.strings();
            let name_of = |symbol: &Symbol| Some(symbol.name(endian, strings).ok()?.to_vec());
            if !symbols.iter().all(|symbol| visit(symbol, &name_of)) {
                return;
            }
        }
    }
}

/// A name as people write it: C++ and Rust encode more in it.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let cpp = cpp_demangle::Symbol::new(name).ok();
    let options = cpp_demangle::DemangleOptions::new().no_params();
    cpp.and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use proptest::prelude::*;

    fn own() -> File {
        File::open("/proc/self/exe").expect("this program")
    }

    #[test]
    fn names_are_written_as_people_write_them() {
        let rust = "_RNvCs6OgWr2Y1v1_7mycrate3run";
        assert_eq!(demangled(rust), "mycrate::run");
        assert_eq!(demangled("_ZN2os6Thread5startEPv"), "os::Thread::start");
        assert_eq!(demangled("bioProcessBackgroundJobs"), "bioProcessBackgroundJobs");
    }

    #[used]
    #[unsafe(no_mangle)]
    static LUC_PROBE_TEST_CONSTANT: [u8; 3] = [7, 5, 3];

    #[test]
    fn a_constant_is_found_by_its_name() {
        let found = constant(&own(), "LUC_PROBE_TEST_CONSTANT");
        assert_eq!(found, Some(LUC_PROBE_TEST_CONSTANT));
        assert_eq!(constant::<2>(&own(), "LUC_PROBE_TEST_CONSTANT"), None);
        assert_eq!(constant::<3>(&own(), "LUC_PROBE_TEST_NOTHING"), None);
    }

    proptest! {
        #[test]
        fn a_broken_file_has_no_names(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
            length in any::<prop::sample::Index>(),
            offset in any::<u64>(),
        ) {
            let mut bytes = std::fs::read("/lib64/ld-linux-x86-64.so.2")
                .or_else(|_| std::fs::read("/lib/ld-linux-aarch64.so.1"))
                .expect("the loader of programs");
            for (place, byte) in changes {
                // The headers are at the begin and at the end.
                let place = place.index(4096);
                let place = if byte % 2 == 0 { place } else { bytes.len() - 1 - place };
                bytes[place] = byte;
            }
            bytes.truncate(bytes.len() - length.index(2) * length.index(bytes.len()));
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("written");
            let _ = function_at(&file, offset % (1 << 20));
            let _ = constant::<4>(&file, "_rtld_global");
        }
    }
}
