//! Reads of an earlier state than the present one.

/// An earlier state, to be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The state of this resource version.
    Revision(u64),
    /// The state so many writes, of whatever, before the present one.
    Behind(u64),
}

impl AsOf {
    /// The revision of the state, of which `present` is the present one.
    pub(crate) fn revision(self, present: u64) -> u64 {
        match self {
            Self::Revision(revision) => revision.min(present),
            Self::Behind(writes) => present.saturating_sub(writes),
        }
    }
}
