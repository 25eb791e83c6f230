//! Reads of an earlier state than the present one.

/// The earlier state that a stale read is answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The state at this resource version.
    Revision(u64),
    /// The state this number of writes, to any resource, before the present one.
    Behind(u64),
}

impl AsOf {
    /// The revision of that state; `present` is the revision of the last write.
    pub(crate) fn revision(self, present: u64) -> u64 {
        match self {
            Self::Revision(revision) => revision.min(present),
            Self::Behind(writes) => present.saturating_sub(writes),
        }
    }
}
