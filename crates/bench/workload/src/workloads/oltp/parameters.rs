//! Parameters of the personality: numbers of readers and writers, sizes, durability.

use serde::Serialize;

use crate::error::BenchError;

/// Method by which a write becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncMethod {
    None,
    /// The file is open with `O_DSYNC`.
    Dsync,
    /// The file is open with `O_SYNC`, as Filebench's `dsync` opens it.
    Sync,
    /// An fsync after each write, measured apart.
    Fsync,
}

impl SyncMethod {
    pub(super) fn open_flags(self) -> i32 {
        match self {
            Self::None | Self::Fsync => 0,
            Self::Dsync => libc::O_DSYNC,
            Self::Sync => libc::O_SYNC,
        }
    }
}

/// Parameters of the workload `oltp`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OltpParameters {
    pub name: &'static str,
    /// Clients that read ("shadow").
    pub readers: usize,
    /// Clients that overwrite ("dbwr").
    pub writers: usize,
    pub files: usize,
    pub file_size_bytes: u64,
    pub io_size_bytes: u64,
    /// Bytes of the log, which is overwritten from beginning to end and again.
    pub log_size_bytes: u64,
    pub log_io_size_bytes: u64,
    pub write_durability: SyncMethod,
    pub log_durability: SyncMethod,
    /// Memory stores after each read: the transaction's computing.
    pub read_stores: u64,
    /// Memory stores after each burst of writes.
    pub write_stores: u64,
    /// Writes of a burst.
    pub burst_writes: u64,
    /// Whether bursts and log writes wait for reads, as in Filebench.
    pub coupled: bool,
}

/// `oltp.f` as Filebench ships it.
pub const FILEBENCH: OltpParameters = OltpParameters {
    name: "filebench",
    readers: 200,
    writers: 10,
    files: 10,
    file_size_bytes: 10 << 20,
    io_size_bytes: 2 << 10,
    log_size_bytes: 10 << 20,
    log_io_size_bytes: 256 << 10,
    write_durability: SyncMethod::Sync,
    log_durability: SyncMethod::Sync,
    read_stores: 200_000,
    write_stores: 10_000,
    burst_writes: 100,
    coupled: true,
};

/// The LUC paper's: 48 threads on 48 files. It does not say how many of them read; here all
/// overwrite, and the log writer, one more, syncs each of its writes.
pub const LUC: OltpParameters = OltpParameters {
    name: "luc",
    readers: 0,
    writers: 48,
    files: 48,
    file_size_bytes: 1 << 20,
    io_size_bytes: 2 << 10,
    log_size_bytes: 10 << 20,
    log_io_size_bytes: 2 << 10,
    write_durability: SyncMethod::None,
    log_durability: SyncMethod::Fsync,
    read_stores: 0,
    write_stores: 10_000,
    burst_writes: 1,
    coupled: false,
};

impl OltpParameters {
    /// Counts all clients: readers, writers, and the log writer.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.readers + self.writers + 1
    }

    pub(super) fn check(&self) -> Result<(), BenchError> {
        let refuse =
            |option: String, reason, advice| Err(BenchError::Input { option, reason, advice });
        if !(1..=100_000).contains(&self.files) {
            let option = format!("--files {}", self.files);
            return refuse(option, "out of range", "use 1 to 100000 files");
        }
        if self.coupled && self.readers == 0 {
            return refuse(
                "--readers 0".to_owned(),
                "the writers of --parameters filebench wait for readers",
                "use at least 1 or --parameters luc",
            );
        }
        for (what, io, file) in [
            ("--io-size", self.io_size_bytes, self.file_size_bytes),
            ("--log-io-size", self.log_io_size_bytes, self.log_size_bytes),
        ] {
            if io == 0 || io > file {
                return refuse(
                    format!("{what} {io}"),
                    "not between 1 byte and the file's size",
                    "use less or a larger --file-size",
                );
            }
        }
        Ok(())
    }
}
