//! The FUSE file system that carries the disk: a directory with one file, the image.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};

use crate::block_errno::BlockErrno;
use crate::engine::{DiskEngine, RequestReply};

pub(crate) const FILE_NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
/// Lifetime of attributes, which never change.
const ATTRIBUTE_TTL: Duration = Duration::from_secs(1 << 30);
/// The kernel's own limit for one request (fs.fuse.max_pages_limit, 256 pages).
pub(crate) const MAX_REQUEST_BYTES: u32 = 1 << 20;
/// Queue limit: a loop device's queue depth of 128, with each request split in a few.
const MAX_BACKGROUND: u16 = 1024;
/// Modes of fallocate(2) that deallocate.
const PUNCH_MODES: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;

/// A reply of any kind to the kernel.
#[derive(Debug)]
pub(crate) enum FuseReply {
    Read(ReplyData),
    Write(ReplyWrite),
    Empty(ReplyEmpty),
}

impl RequestReply for FuseReply {
    fn data(self, bytes: &[u8]) {
        match self {
            Self::Read(reply) => reply.data(bytes),
            other => other.failed(BlockErrno::EIO),
        }
    }

    fn done(self, len: u32) {
        match self {
            Self::Write(reply) => reply.written(len),
            Self::Empty(reply) => reply.ok(),
            Self::Read(reply) => reply.error(Errno::EIO),
        }
    }

    fn failed(self, errno: BlockErrno) {
        let errno = Errno::from_i32(errno.number());
        match self {
            Self::Read(reply) => reply.error(errno),
            Self::Write(reply) => reply.error(errno),
            Self::Empty(reply) => reply.error(errno),
        }
    }
}

#[derive(Debug)]
pub(crate) struct DiskFs {
    pub(crate) engine: Arc<DiskEngine<FuseReply>>,
    pub(crate) size_bytes: u64,
}

impl DiskFs {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let is_file = ino == FILE;
        FileAttr {
            ino,
            size: if is_file { self.size_bytes } else { 0 },
            blocks: if is_file { self.size_bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o500 },
            nlink: if is_file { 1 } else { 2 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let missing = |_| io::Error::other("this kernel's FUSE has no asynchronous direct I/O");
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(missing)?;
        let write = config.set_max_write(MAX_REQUEST_BYTES).is_ok();
        let background = config.set_max_background(MAX_BACKGROUND).is_ok();
        let outcome = if write && background { Ok(()) } else { Err("FUSE limits refused") };
        outcome.map_err(io::Error::other)
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE_NAME {
            reply.entry(&ATTRIBUTE_TTL, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&ATTRIBUTE_TTL, &self.attributes(ino));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(
            FileHandle(0),
            FopenFlags::FOPEN_DIRECT_IO
                | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                | FopenFlags::FOPEN_NOFLUSH,
        );
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.engine.read(offset, size, FuseReply::Read(reply));
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.engine.write(offset, data, FuseReply::Write(reply));
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.engine.flush(FuseReply::Empty(reply));
    }

    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & PUNCH_MODES == 0 {
            reply.error(Errno::EOPNOTSUPP);
        } else {
            self.engine.discard(offset, length, FuseReply::Empty(reply));
        }
    }
}
