//! One page of a list.
use std::sync::Arc;

use super::Stored;

/// One page of a list.
#[derive(Clone, Debug)]
pub(crate) struct ListPage {
    /// The revision at which the objects were listed.
    pub(crate) revision: u64,
    /// The objects of the page, in the order of their keys.
    pub(crate) items: Vec<Arc<Stored>>,
    /// The continue token and, if it is known, the number of remaining objects; none on the last
    /// page.
    pub(crate) rest: Option<(String, Option<usize>)>,
}
