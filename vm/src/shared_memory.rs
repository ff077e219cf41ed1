//! Memory that guests and the host share.

use std::fs::File;
use std::process::Command;
use std::sync::Arc;

use crate::error::Error;
use crate::running_guest::MemoryFile;

/// Memory that guests and the host share, for [`VirtualMachine::shared_memory`](crate::VirtualMachine::shared_memory).
/// A guest finds it as a PCI device of vendor 1af4 and device 1110; its resource 2 can be mapped through sysfs.
#[derive(Debug, Clone)]
pub struct SharedMemory {
    file: Arc<MemoryFile>,
    bytes: u64,
}

impl SharedMemory {
    /// Makes `bytes` bytes of it, all zeros.
    ///
    /// # Errors
    /// [`Error::System`] if there is no memory.
    ///
    /// # Panics
    /// If `bytes` is no power of two, as the size of a PCI resource must be.
    pub fn new(bytes: u64) -> Result<Self, Error> {
        assert!(bytes.is_power_of_two(), "{bytes} is no power of two");
        let mut file = MemoryFile::new("luc-vm-shared")?;
        file.file()
            .set_len(bytes)
            .map_err(|source| Error::System { what: "making memory that guests share", source })?;
        Ok(Self { file: Arc::new(file), bytes })
    }

    /// The memory file behind it.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Attaches the memory to an emulator's guest.
    pub(crate) fn attach(&self, qemu: &mut Command) {
        let (path, bytes) = (self.file.path(), self.bytes);
        qemu.args([
            "-object",
            &format!("memory-backend-file,id=shared,share=on,mem-path={path},size={bytes}"),
        ]);
        qemu.args(["-device", "ivshmem-plain,memdev=shared"]);
    }
}
