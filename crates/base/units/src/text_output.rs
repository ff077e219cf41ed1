//! Text for people, by macros that go on where the standard library's of the same names would panic.
//!
//! One place decides about text that cannot be written, so that a command ends its work and clears up. A reader that
//! has seen enough (`luc ... | head`) is no error. Text that standard output refuses for another reason is an error at
//! the end ([`finish`]). Text that standard error refuses is lost.

use std::error::Error;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};
use std::sync::Mutex;

/// First reason for which standard output has refused text.
static REFUSED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to standard output, until it refuses.
pub fn print(text: Arguments<'_>) {
    let mut refused = REFUSED.lock().unwrap_or_else(|error| error.into_inner());
    if refused.is_none() {
        *refused = io::stdout().write_fmt(text).err();
    }
}

/// Writes to standard error.
pub fn note(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Whether an error is that the reader of an output has gone.
#[must_use]
pub fn is_reader_gone(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let of_the_system = error.downcast_ref::<io::Error>();
        if of_the_system.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Flushes standard output.
///
/// # Errors
/// The first reason why text is lost, other than a reader that has gone.
pub fn finish() -> io::Result<()> {
    let refused = REFUSED.lock().unwrap_or_else(|error| error.into_inner()).take();
    match refused.map_or_else(|| io::stdout().flush(), Err) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Works like the standard library's, but does not panic: see [`text_output`](mod@crate::text_output).
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::text_output::print(::std::format_args!($($text)*)) };
}

/// Works like the standard library's, but does not panic: see [`text_output`](mod@crate::text_output).
#[macro_export]
macro_rules! println {
    ($($text:tt)*) => { $crate::text_output::print(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

/// Works like the standard library's, but does not panic: see [`text_output`](mod@crate::text_output).
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::text_output::note(::std::format_args!($($text)*)) };
}

/// Works like the standard library's, but does not panic: see [`text_output`](mod@crate::text_output).
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::text_output::note(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileOperationError, OnPath as _};

    #[test]
    fn a_reader_that_has_gone_is_known_below_other_errors() {
        let gone: FileOperationError =
            FileOperationError::io("write", "-")(io::Error::from(ErrorKind::BrokenPipe));
        assert!(is_reader_gone(&gone));
        let full: FileOperationError =
            FileOperationError::io("write", "-")(io::Error::from(ErrorKind::StorageFull));
        assert!(!is_reader_gone(&full));
    }
}
