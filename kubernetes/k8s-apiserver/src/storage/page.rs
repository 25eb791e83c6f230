//! One page of a list.
use std::sync::Arc;

use super::Stored;

/// The objects of a list, and where the rest is.
#[derive(Clone, Debug)]
pub(crate) struct ListPage {
    /// Revision of the state that was listed.
    pub(crate) revision: u64,
    /// The objects.
    pub(crate) items: Vec<Arc<Stored>>,
    /// Token for the next page, and how many objects are left.
    pub(crate) rest: Option<(String, Option<usize>)>,
}
