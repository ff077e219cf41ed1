//! Enumerations. Files store each value's name, so that any Parquet tool shows it.

/// Defines an enumeration whose values have a number (shared with the BPF side) and a name (in files).
macro_rules! codes {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$value_doc:meta])* $value:ident = $code:literal $text:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$value_doc])* $value = $code,)+
        }

        impl $name {
            /// All values by number.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];

            /// Returns the value's number.
            pub fn code(self) -> u8 {
                self as u8
            }

            /// Returns the value with this number.
            pub fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$value),)+
                    _ => None,
                }
            }

            /// Returns the value's name in files and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }

            /// Returns the value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$value),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// A way to ask for durable data.
    pub enum SyncKind {
        /// `fsync(2)`, also through io_uring.
        #[default]
        Fsync = 0 "fsync",
        /// `fdatasync(2)`, also through io_uring.
        Fdatasync = 1 "fdatasync",
        /// `msync(2)` with `MS_SYNC`.
        Msync = 2 "msync",
        /// `sync_file_range(2)`, which needs no commit.
        SyncFileRange = 3 "sync_file_range",
        /// A write to a file opened with `O_SYNC` or `O_DSYNC`, or `RWF_SYNC`: only its sync part.
        SyncWrite = 4 "sync_write",
        /// `syncfs(2)` or `sync(2)`.
        Syncfs = 5 "syncfs",
    }
}

codes! {
    /// A file-system call other than a sync.
    pub enum FileCallKind {
        /// `write`, `pwrite`, `writev`, `pwritev`.
        #[default]
        Write = 0 "write",
        /// `open` or `openat` with `O_CREAT`.
        Create = 1 "create",
        /// `unlink`, `unlinkat`, `rmdir`.
        Unlink = 2 "unlink",
        /// `rename`, `renameat`, `renameat2`.
        Rename = 3 "rename",
        /// `mkdir`, `mkdirat`.
        Mkdir = 4 "mkdir",
        /// `truncate`, `ftruncate`.
        Truncate = 5 "truncate",
        /// `fallocate`.
        Fallocate = 6 "fallocate",
        /// `read`, `pread`, `readv`, `preadv`.
        Read = 7 "read",
        /// `open` or `openat` without `O_CREAT`.
        Open = 8 "open",
        /// `close`.
        Close = 9 "close",
    }
}

codes! {
    /// Kind of a commit.
    pub enum CommitKind {
        /// A full jbd2 commit.
        #[default]
        Full = 0 "full",
        /// An ext4 fast commit.
        Fast = 1 "fast",
    }
}

codes! {
    /// The state in which a thread left its processor.
    pub enum WaitState {
        /// Still runnable: it was preempted or yielded.
        #[default]
        Preempted = 0 "R",
        /// Interruptible sleep.
        Interruptible = 1 "S",
        /// Uninterruptible sleep.
        Uninterruptible = 2 "D",
        /// Stopped, traced, dead, parked or another state.
        Other = 3 "other",
    }
}

codes! {
    /// Operation of a block request.
    pub enum RequestKind {
        /// Reads.
        #[default]
        Read = 0 "read",
        /// Writes.
        Write = 1 "write",
        /// Discards or erases.
        Discard = 2 "discard",
        /// Flushes the device's cache and moves no data.
        Flush = 3 "flush",
        /// Any other operation.
        Other = 4 "other",
    }
}

codes! {
    /// Way of data to the disk.
    pub enum DataDirection {
        /// Made dirty in the page cache.
        #[default]
        Dirtied = 0 "dirtied",
        /// Written by the thread that called fsync or the like.
        WrittenBySync = 1 "written_by_sync",
        /// Written by the journal thread for a commit.
        WrittenByCommit = 2 "written_by_commit",
        /// Written by the kernel's flusher threads.
        WrittenByFlusher = 3 "written_by_flusher",
        /// Written directly, past the page cache.
        WrittenDirectly = 4 "written_directly",
    }
}

codes! {
    /// Events that a row of the summary mode counts.
    pub enum SummarizedKind {
        /// fsync and the like, from enter to exit.
        #[default]
        Sync = 0 "sync",
        /// Commits, from start to end.
        Commit = 1 "commit",
        /// Waits by cause, from off-CPU to on-CPU.
        Wait = 2 "wait",
        /// Block requests, from issue to completion.
        Request = 3 "request",
        /// Device flushes, from issue to completion.
        Flush = 4 "flush",
    }
}

codes! {
    /// Direction of a message or a packet, seen from the connection's own end.
    pub enum MessageDirection {
        /// Towards the other end.
        #[default]
        Sent = 0 "sent",
        /// From the other end.
        Received = 1 "received",
    }
}

codes! {
    /// Carrier of a connection.
    pub enum ConnectionFamily {
        /// IPv4, also where the socket is of IPv6 and its addresses are mapped.
        #[default]
        Ipv4 = 0 "ipv4",
        /// IPv6.
        Ipv6 = 1 "ipv6",
        /// A pair of unix sockets, as a stream.
        Unix = 2 "unix",
        /// A pair of unix sockets that keeps messages apart, in order (SOCK_SEQPACKET).
        UnixSeqpacket = 3 "unix_seqpacket",
        /// A pair of unix sockets for datagrams, connected to each other.
        UnixDatagram = 4 "unix_dgram",
        /// A pipe or a FIFO.
        Pipe = 5 "pipe",
    }
}

impl ConnectionFamily {
    /// Returns whether both ends of the connection are on one host, and count bytes from the same origin.
    #[must_use]
    pub fn is_within_host(self) -> bool {
        !matches!(self, Self::Ipv4 | Self::Ipv6)
    }
}

codes! {
    /// Mode of the processor in which a counter counts.
    pub enum CounterMode {
        /// Both modes together.
        #[default]
        Total = 0 "total",
        /// User mode only.
        User = 1 "user",
        /// Kernel mode only.
        Kernel = 2 "kernel",
    }
}

codes! {
    /// Role of a socket in its connection.
    pub enum SocketRole {
        /// The role is unknown.
        #[default]
        Unknown = 0 "unknown",
        /// The socket connected.
        Client = 1 "client",
        /// The socket was connected to.
        Server = 2 "server",
    }
}

codes! {
    /// Source of a connection's initial sequence numbers.
    pub enum SequenceSource {
        /// The numbers are unknown.
        #[default]
        Unknown = 0 "unknown",
        /// The connection was established while it was watched.
        Seen = 1 "seen",
        /// The connection is older than the trace. The numbers follow from the kernel's counts since (`bytes_sent`,
        /// `bytes_retrans`, `bytes_acked`, `bytes_received`).
        Counted = 2 "counted",
    }
}

/// Flags of a block request, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct RequestFlags(pub u32);

impl RequestFlags {
    /// Forced unit access: durable when complete.
    pub const FUA: Self = Self(1);
    /// Flush of the device's cache before the request.
    pub const PREFLUSH: Self = Self(1 << 1);
    /// Metadata of a file system.
    pub const META: Self = Self(1 << 2);
    /// A thread waits for the request.
    pub const SYNC: Self = Self(1 << 3);
    /// Read-ahead of a file.
    pub const AHEAD: Self = Self(1 << 4);

    /// Returns whether all flags of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for RequestFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
