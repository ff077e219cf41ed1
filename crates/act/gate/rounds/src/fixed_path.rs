//! Paths in fixed buffers.

use core::ffi::CStr;

/// The decimal digits of a number, in the given buffer.
pub fn decimal(mut number: u32, buffer: &mut [u8; 10]) -> &[u8] {
    let mut start = buffer.len();
    while start > 0 {
        start -= 1;
        buffer[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    buffer.get(start..).unwrap_or_default()
}

/// A path that always ends in NUL.
#[derive(Clone, Copy, Debug)]
pub struct FixedPath<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> FixedPath<BYTES> {
    /// The parts one after the other; nothing if they do not fit.
    pub fn new(parts: &[&[u8]]) -> Option<Self> {
        let mut path = Self([0; BYTES]);
        let mut rest = path.0.as_mut_slice();
        for part in parts {
            let (place, after) = rest.split_at_mut_checked(part.len())?;
            place.copy_from_slice(part);
            rest = after;
        }
        (!rest.is_empty()).then_some(path)
    }

    /// The path up to its first NUL.
    pub fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_digits() {
        for number in [0, 7, 10, 253, u32::MAX] {
            assert_eq!(decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        assert!(FixedPath::<16>::new(&[b"/", &[b'x'; 14]]).is_some());
        assert!(FixedPath::<16>::new(&[b"/", &[b'x'; 15]]).is_none());
        assert!(FixedPath::<16>::new(&[&[b'x'; 64]]).is_none());
    }
}
