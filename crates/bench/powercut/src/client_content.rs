//! Contents that clients write. Every step, name and byte is a function of (seed, client, step number), so that the
//! check needs no record.

use luc_stats::seeded_random;
use rand::RngExt;

/// Largest body of one step, bytes.
const MAX_BODY_BYTES: u32 = 64 << 10;

/// Changes of a file that a client has made and acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAmendment {
    Append,
    /// Overwrite all bytes in place, fsync.
    Overwrite,
    /// Write another file, fsync it, rename it over the first, fsync the directory.
    Replace,
}

/// Step of a client: it creates a file or changes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientStep {
    /// Make the file of this number, write it, fsync.
    Create,
    /// Change the file made in the step before. A file is changed once at most.
    Amend(FileAmendment),
}

/// Writer of one client's files in one round, by its seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoundWriter {
    pub(super) seed: u64,
    pub(super) client: u32,
}

impl RoundWriter {
    fn random(self, step: u32) -> rand_chacha::ChaCha8Rng {
        seeded_random::stream(self.seed, u64::from(self.client) << 32 | u64::from(step))
    }

    /// Returns the client's action in a step: every fourth changes the file of the step before.
    pub(super) fn step(self, step: u32) -> ClientStep {
        if step % 4 != 3 {
            return ClientStep::Create;
        }
        ClientStep::Amend(match self.random(step).random_range(0..3) {
            0 => FileAmendment::Append,
            1 => FileAmendment::Overwrite,
            _ => FileAmendment::Replace,
        })
    }

    /// Returns the number of the file that a step makes or changes: the number of the step that makes it.
    pub(super) fn file(self, step: u32) -> u32 {
        match self.step(step) {
            ClientStep::Create => step,
            ClientStep::Amend(_) => step - 1,
        }
    }

    pub(super) fn name(self, file: u32) -> String {
        format!("c{:04}-{file:06}", self.client)
    }

    /// Returns the bytes that a step writes. A step that overwrites writes the length of the file.
    pub(super) fn body(self, step: u32) -> Vec<u8> {
        let mut random = self.random(step);
        let _kind: u32 = random.random_range(0..3);
        let mut length = match random.random_range(0..8) {
            0 => 0,
            _ => random.random_range(0..MAX_BODY_BYTES) >> random.random_range(0..16),
        } as usize;
        if self.step(step) == ClientStep::Amend(FileAmendment::Overwrite) {
            length = self.body(step - 1).len();
        }
        seeded_random::bytes(&mut random, length)
    }

    /// Returns a file's whole contents after the step that changes it.
    pub(super) fn amended(self, file: u32, amend: FileAmendment) -> Vec<u8> {
        let body = self.body(file + 1);
        match amend {
            FileAmendment::Append => {
                let mut whole = self.body(file);
                whole.extend_from_slice(&body);
                whole
            }
            FileAmendment::Overwrite | FileAmendment::Replace => body,
        }
    }

    /// Returns the later change of the file, if there is one.
    pub(super) fn amendment(self, file: u32) -> Option<FileAmendment> {
        match self.step(file + 1) {
            ClientStep::Amend(amend) => Some(amend),
            ClientStep::Create => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn steps_repeat_and_stay_in_bounds(seed: u64, client in 0_u32..4096, step in 0_u32..10_000) {
            let writer = RoundWriter { seed, client };
            prop_assert_eq!(writer.body(step), writer.body(step));
            prop_assert!(writer.body(step).len() <= MAX_BODY_BYTES as usize);
            let file = writer.file(step);
            prop_assert!(file <= step && writer.step(file) == ClientStep::Create);
            if let Some(amend) = writer.amendment(file) {
                let before = writer.body(file);
                let after = writer.amended(file, amend);
                match amend {
                    FileAmendment::Append => prop_assert!(after.starts_with(&before)),
                    FileAmendment::Overwrite => prop_assert_eq!(after.len(), before.len()),
                    FileAmendment::Replace => prop_assert_eq!(after, writer.body(file + 1)),
                }
            }
        }

        #[test]
        fn clients_write_different_bytes(seed: u64, step in 0_u32..100) {
            let body = |client| RoundWriter { seed, client }.body(step);
            let (one, other) = (body(0), body(1));
            prop_assume!(one.len() > 8 && other.len() > 8);
            prop_assert_ne!(one, other);
        }
    }

    #[test]
    fn every_kind_and_size_occurs() {
        let writer = RoundWriter { seed: 1, client: 0 };
        let steps: Vec<ClientStep> = (0..400).map(|step| writer.step(step)).collect();
        for kind in [FileAmendment::Append, FileAmendment::Overwrite, FileAmendment::Replace] {
            assert!(steps.contains(&ClientStep::Amend(kind)), "{kind:?}");
        }
        let sizes: Vec<usize> = (0..400).map(|step| writer.body(step).len()).collect();
        assert!(sizes.contains(&0) && sizes.iter().any(|&size| size > 32 << 10));
    }
}
