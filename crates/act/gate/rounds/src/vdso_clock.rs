//! The kernel's clock without a system call: a function that the kernel maps into each process (vdso(7)).
//!
//! No library can interpose it, and no filter of system calls is asked. Where it is not found the system call is made.

use core::ffi::{CStr, c_int};
use core::mem::{offset_of, transmute};
use core::ptr;

/// `clock_gettime(2)`; 0, or a negated `errno`.
pub type ClockFunction = unsafe extern "C" fn(c_int, *mut libc::timespec) -> c_int;

/// The name of the function in the image.
#[cfg(target_arch = "x86_64")]
const NAME: &CStr = c"__vdso_clock_gettime";
#[cfg(target_arch = "aarch64")]
const NAME: &CStr = c"__kernel_clock_gettime";

const MAGIC: [u8; 4] = *b"\x7fELF";

/// Symbols that are looked at, at most: an image has about ten.
const MAX_SYMBOLS: usize = 64;

/// Entries of the dynamic section, at most.
const MAX_ENTRIES: usize = 64;

#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: i64,
    value: u64,
}

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;

/// Finds the clock in the image whose address the auxiliary vector has as `AT_SYSINFO_EHDR`; 0 is none.
///
/// # Safety
///
/// `image` is 0 or what the kernel has put there.
pub unsafe fn clock(image: usize) -> Option<ClockFunction> {
    if image == 0 {
        return None;
    }
    let header = image as *const libc::Elf64_Ehdr;
    // SAFETY: an image begins with its header, as the caller promises.
    let header = unsafe { &*header };
    if header.e_ident.get(..4)? != MAGIC {
        return None;
    }
    let segments = (image + header.e_phoff as usize) as *const libc::Elf64_Phdr;
    let mut base = None;
    let mut dynamic = ptr::null::<Entry>();
    for index in 0..usize::from(header.e_phnum) {
        // SAFETY: the header says how many there are.
        let segment = unsafe { &*segments.add(index) };
        match segment.p_type {
            libc::PT_LOAD if base.is_none() => {
                base = Some(
                    image
                        .wrapping_add(segment.p_offset as usize)
                        .wrapping_sub(segment.p_vaddr as usize),
                );
            }
            libc::PT_DYNAMIC => dynamic = (image + segment.p_offset as usize) as *const Entry,
            _ => {}
        }
    }
    let base = base.filter(|_| !dynamic.is_null())?;
    let [mut strings, mut symbols] = [0; 2];
    for index in 0..MAX_ENTRIES {
        // SAFETY: the section ends in an entry of the kind null, at which this stops.
        let entry = unsafe { *dynamic.add(index) };
        match entry.tag {
            DT_NULL => break,
            DT_STRTAB => strings = base.wrapping_add(entry.value as usize),
            DT_SYMTAB => symbols = base.wrapping_add(entry.value as usize),
            _ => {}
        }
    }
    if strings == 0 || symbols == 0 || symbols >= strings {
        return None;
    }
    // The linker puts the strings right behind the symbols.
    let count = (strings - symbols) / size_of::<libc::Elf64_Sym>();
    let symbols = symbols as *const libc::Elf64_Sym;
    (0..count.min(MAX_SYMBOLS)).find_map(|index| {
        // SAFETY: `count` symbols lie before the strings.
        let symbol = unsafe { &*symbols.add(index) };
        let name = (strings + symbol.st_name as usize) as *const _;
        // SAFETY: names are C strings of the table of strings.
        let is_clock = symbol.st_value != 0 && unsafe { CStr::from_ptr(name) } == NAME;
        // SAFETY: the kernel's function of this name has this signature.
        is_clock.then(|| unsafe {
            transmute::<usize, ClockFunction>(base.wrapping_add(symbol.st_value as usize))
        })
    })
}

const _: () = assert!(offset_of!(libc::Elf64_Ehdr, e_phoff) == 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_function_has_the_clock_s_time() {
        // SAFETY: plain numbers.
        let image = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
        // SAFETY: what the kernel has put there.
        let clock = unsafe { clock(image as usize) }.expect("this kernel maps one");
        let now_ns = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is valid for writes.
            assert_eq!(unsafe { clock(libc::CLOCK_MONOTONIC, &raw mut time) }, 0);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let mut before_ns = crate::call_path_syscalls::now_ns();
        for _ in 0..100 {
            let here_ns = now_ns();
            let after_ns = crate::call_path_syscalls::now_ns();
            assert!(before_ns <= here_ns && here_ns <= after_ns);
            before_ns = after_ns;
        }
    }

    #[test]
    fn what_is_no_image_has_no_clock() {
        let nothing = [0_u64; 64];
        // SAFETY: none, and one without the mark, which is not followed.
        let found = unsafe { [clock(0), clock(nothing.as_ptr() as usize)] };
        assert!(found.iter().all(Option::is_none));
    }
}
