//! The uncompressed kernel inside a bzImage (Documentation/arch/x86/boot.rst in the kernel's sources).

use std::io::Write;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::host_tools;

/// Offsets in the setup header.
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// Compression formats of a payload: first bytes, and the program that decompresses it.
const FORMATS: [(&[u8], &str); 2] = [(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];

/// Extracts the ELF image from `image`.
///
/// # Errors
///
/// What is wrong with the image, as text; or that its compression is not known or its program fails.
pub(super) fn extract(image: &[u8]) -> Result<Vec<u8>, Error> {
    let payload = payload(image).ok_or_else(|| failed("it is no bzImage of boot protocol 2.08"))?;
    let (_, program) = FORMATS
        .iter()
        .find(|(magic, _)| payload.starts_with(magic))
        .ok_or_else(|| failed("its compression is neither xz nor zstd: use another kernel"))?;
    let vmlinux = decompress(program, payload)?;
    if !vmlinux.starts_with(b"\x7fELF") {
        return Err(failed("what is compressed in it is no ELF file"));
    }
    Ok(vmlinux)
}

/// Returns the compressed payload, without its size in the four bytes after it.
fn payload(image: &[u8]) -> Option<&[u8]> {
    if image.get(MAGIC..MAGIC + 4)? != b"HdrS" {
        return None;
    }
    let setup_bytes = (usize::from(*image.get(SETUP_SECTORS)?) + 1) * 512;
    let start = setup_bytes + number(image, PAYLOAD_OFFSET)?;
    let length = number(image, PAYLOAD_LENGTH)?.checked_sub(4)?;
    image.get(start..start.checked_add(length)?)
}

fn number(image: &[u8], at: usize) -> Option<usize> {
    let bytes = image.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// Decompresses `bytes` by `program` ("xz", "zstd").
pub(crate) fn decompress(program: &'static str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let system = |source| Error::System { what: "decompressing a kernel", source };
    let mut child = Command::new(host_tools::find(program)?)
        .args(["-d", "-c", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(system)?;
    let mut input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // A child that ends early says so by its exit status; the broken pipe says nothing more.
        scope.spawn(move || input.as_mut().map(|input| input.write_all(bytes)));
        child.wait_with_output().map_err(system)
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Command {
        command: program.to_owned(),
        reason: format!("{}: {message}", output.status),
    })
}

fn failed(reason: &str) -> Error {
    Error::Command { command: "reading the kernel's image".to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_kernel_is_refused() {
        for image in [&b""[..], &[0; 4096], b"MZ and not much more"] {
            let error = extract(image).expect_err("no kernel");
            assert!(error.to_string().contains("no bzImage"), "{error}");
        }
    }
}
