//! The channels that offers are found in, indexed when they are first asked.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use semver::Version;

use crate::channel::{ChannelGraph, ChannelOrder, order, skipped};
use crate::package::{Channel, Package};
use crate::range::masterminds::Range;

/// The indexes of channels that were asked for offers. Whoever asks the same catalogs several times keeps one.
#[derive(Debug, Default)]
pub struct ChannelIndex(RefCell<BTreeMap<[usize; 3], Rc<IndexedChannel>>>);

impl ChannelIndex {
    /// Returns the index of a channel; `place` has the indexes of its catalog, its package and itself.
    pub(super) fn channel(
        &self,
        place: [usize; 3],
        package: &Package,
        channel: &Channel,
    ) -> Rc<IndexedChannel> {
        let mut channels = self.0.borrow_mut();
        let indexed =
            channels.entry(place).or_insert_with(|| Rc::new(IndexedChannel::new(package, channel)));
        Rc::clone(indexed)
    }
}

/// A channel with its order and graph. Entries and bundles are meant by their indexes.
#[derive(Debug)]
pub(super) struct IndexedChannel {
    pub(super) order: ChannelOrder,
    /// The bundle of each entry; `None` if the package has none.
    pub(super) bundles: Vec<Option<usize>>,
    /// The place of each entry in the order; `None` if it is not in it.
    pub(super) positions: Vec<Option<usize>>,
    /// The bundles in the order, without those of the same version, the highest version first.
    pub(super) versions: Vec<usize>,
    graph: OnceCell<ChannelGraph>,
    /// What was found last of a range: those who ask rarely change it.
    range: RefCell<Option<(Range, Rc<InRange>)>>,
}

/// What a channel has of a range.
#[derive(Debug, Default)]
pub(super) struct InRange {
    /// The entries from which updates lead into the range.
    pub(super) leading: BTreeSet<usize>,
    /// The versions in the range that entries skip.
    pub(super) skipped: Vec<(Version, usize)>,
}

impl IndexedChannel {
    fn new(package: &Package, channel: &Channel) -> Self {
        let order = order(channel);
        let by_name = package.bundles.iter().enumerate().rev();
        let by_name: BTreeMap<&str, usize> =
            by_name.map(|(at, bundle)| (bundle.name.as_str(), at)).collect();
        let bundles: Vec<Option<usize>> =
            channel.entries.iter().map(|it| by_name.get(it.name.as_str()).copied()).collect();
        let mut positions = vec![None; channel.entries.len()];
        for (position, at) in order.entries.iter().enumerate() {
            positions[*at] = Some(position);
        }
        let version = |at: &usize| &package.bundles[*at].version;
        let mut versions: Vec<usize> = order.entries.iter().filter_map(|at| bundles[*at]).collect();
        versions.sort_by(|one, other| version(other).cmp(version(one)));
        versions.dedup_by(|one, other| version(one) == version(other));
        let (graph, range) = (OnceCell::new(), RefCell::new(None));
        Self { order, bundles, positions, versions, graph, range }
    }

    /// Returns the graph.
    pub(super) fn graph(&self, package: &Package, channel: &Channel) -> &ChannelGraph {
        self.graph.get_or_init(|| ChannelGraph::new(channel, &versions(package)))
    }

    /// Returns what the channel has of a range.
    pub(super) fn in_range(
        &self,
        package: &Package,
        channel: &Channel,
        range: &Range,
    ) -> Rc<InRange> {
        if let Some((last, found)) = &*self.range.borrow()
            && last == range
        {
            return Rc::clone(found);
        }
        let is_in_range = |version: &Version| range.matches(version);
        let graph = self.graph(package, channel);
        let skipped = skipped(channel, &versions(package)).into_iter();
        let found = Rc::new(InRange {
            leading: graph.leading_to(channel, &is_in_range),
            skipped: skipped.filter(|(version, _)| range.matches(version)).collect(),
        });
        *self.range.borrow_mut() = Some((range.clone(), Rc::clone(&found)));
        found
    }
}

/// Returns the versions of bundles, by name.
fn versions<'p>(package: &'p Package) -> impl Fn(&str) -> Option<&'p Version> + use<'p> {
    // Of two bundles of one name the first is meant.
    let bundles = package.bundles.iter().rev();
    let by_name: BTreeMap<&str, &Version> =
        bundles.map(|bundle| (bundle.name.as_str(), &bundle.version)).collect();
    move |name| by_name.get(name).copied()
}
