//! The order of a payload's manifests, from nothing but their file names (CV-6).
//!
//! A file called `0000_<run level>_<component>_…` belongs to a *run level* and, within it, to a
//! *component*. The manifests of one component in one level form a *chain*: they are applied one
//! after the other, in the order of the payload. Chains are the nodes of the graph.
//!
//! # Rules
//!
//! * **By level** (updates): chains of one level run in parallel; the next level begins when all of
//!   them are complete. Levels follow each other by number.
//! * **Flattened** (installation): no level waits for another; all chains run in parallel.
//! * **Shuffled** (reconciling): as flattened, in an order that changes with the attempt, so that
//!   a chain that is stuck does not always hold up the same others.
//! * A **Job** is a barrier in every ordering: it waits for all that stands before it, and all that
//!   stands after it waits for it.
//! * A file whose name does not match has no level. It stays at its place: in a chain with the files
//!   beside it that do not match either, after the levels before it and before those after it.
//!
//! # Departures from upstream
//!
//! * Every level is a barrier and every component of it a chain. Upstream makes one serial chain of
//!   neighbouring levels that have a single component each, also where it flattens the levels.
//! * Levels are ordered by number even when the payload lists them otherwise: `0000_9_…` comes
//!   before `0000_10_…`, and a file of level 90 in the first directory of a payload waits for
//!   level 10 of the second. Upstream follows the order of the list.
//! * There are no empty nodes: a chain names all chains of the group before it.

mod shuffle;

use std::collections::BTreeMap;

pub use plimsoll_content::position::Position;

/// How the levels of a payload relate to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordering {
    /// Level by level.
    ByLevel,
    /// All levels at once.
    Flattened,
    /// All levels at once, in an order of this attempt's own.
    Shuffled {
        /// How many passes there were before.
        attempt: u32,
    },
}

/// One manifest, as far as its order depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'a> {
    /// Name of its file.
    pub file: &'a str,
    /// Whether it is a `batch/v1` Job.
    pub is_job: bool,
}

/// Which manifests wait for which others; nodes only wait for nodes before them in the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// The nodes, in the order in which they are begun where nothing else decides.
    pub nodes: Vec<Node>,
}

/// Manifests that are applied one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its tasks, as indices into the list the graph was built from.
    pub tasks: Vec<usize>,
    /// The nodes that must be complete before it begins, as indices into [`Graph::nodes`].
    pub after: Vec<usize>,
    /// The run level, if its files name one.
    pub level: Option<u32>,
    /// The component, if its files name one.
    pub component: Option<String>,
}

/// Reads run level and component from a file name; `None` if the name has another form.
pub fn position(file: &str) -> Option<Position<'_>> {
    Position::of(file)
}

/// Builds the graph of a list of manifests, given in the order of the payload.
pub fn build(tasks: &[Task<'_>], ordering: Ordering) -> Graph {
    let mut graph = Graph::default();
    let mut before = Vec::new();
    for section in sections(tasks) {
        match ordering {
            Ordering::ByLevel => {
                for chains in levels(section) {
                    before = graph.append(chains, &before);
                }
            }
            Ordering::Flattened => before = graph.append(section, &before),
            Ordering::Shuffled { attempt } => {
                before = graph.append(shuffle::reorder(section, attempt), &before);
            }
        }
    }
    graph
}

impl Graph {
    /// Tasks in stages of these sizes: those of a stage side by side, a stage after all of the one before
    /// it.
    pub fn in_stages(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut graph = Self::default();
        let mut before = Vec::new();
        for size in sizes.into_iter().filter(|size| *size > 0) {
            let first = graph.nodes.len();
            let node = |task| Node {
                tasks: vec![task],
                after: before.clone(),
                level: None,
                component: None,
            };
            graph.nodes.extend((first..first + size).map(node));
            before = (first..first + size).collect();
        }
        graph
    }

    /// Appends tasks that are carried out one after the other when all else is done.
    pub fn finish_with(&mut self, tasks: Vec<usize>) {
        if !tasks.is_empty() {
            let after = (0..self.nodes.len()).collect();
            self.nodes.push(Node { tasks, after, level: None, component: None });
        }
    }

    /// Appends chains that run in parallel, all of them after `before`; returns their indices.
    fn append(&mut self, chains: Vec<Chain>, before: &[usize]) -> Vec<usize> {
        let first = self.nodes.len();
        self.nodes.extend(chains.into_iter().map(|chain| Node {
            tasks: chain.tasks,
            after: before.to_vec(),
            level: chain.level,
            component: chain.component,
        }));
        (first..self.nodes.len()).collect()
    }
}

/// Tasks that are carried out one after the other.
#[derive(Debug, Clone)]
struct Chain {
    /// Counts the runs of files without a level, so that these keep their place.
    place: usize,
    level: Option<u32>,
    component: Option<String>,
    tasks: Vec<usize>,
}

/// The chains between Jobs, each Job being a section of its own; ordered by place and level, and
/// in a level by first appearance.
fn sections(tasks: &[Task<'_>]) -> Vec<Vec<Chain>> {
    let mut sections = Vec::new();
    let mut section: Vec<Chain> = Vec::new();
    for (index, place, position) in in_order(tasks) {
        let level = position.map(|position| position.level);
        let component = position.map(|position| position.component.to_owned());
        let chain = Chain { place, level, component, tasks: vec![index] };
        if tasks[index].is_job {
            sections.push(std::mem::take(&mut section));
            sections.push(vec![chain]);
            continue;
        }
        let same = section.iter_mut().find(|other| {
            (other.place, other.level, &other.component)
                == (chain.place, chain.level, &chain.component)
        });
        match same {
            Some(other) => other.tasks.push(index),
            None => section.push(chain),
        }
    }
    sections.push(section);
    sections.retain(|section| !section.is_empty());
    sections
}

/// Task indices with their place and position: sorted by level between files that have none.
fn in_order<'a>(tasks: &[Task<'a>]) -> Vec<(usize, usize, Option<Position<'a>>)> {
    let mut place = 0;
    let mut positioned_before = true;
    let mut order = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let position = position(task.file);
        if position.is_some() != positioned_before {
            place += 1;
            positioned_before = position.is_some();
        }
        order.push((index, place, position));
    }
    order.sort_by_key(|(_, place, position)| (*place, position.map(|position| position.level)));
    order
}

/// Splits a section into groups of chains that run in parallel.
fn levels(section: Vec<Chain>) -> Vec<Vec<Chain>> {
    let mut groups: BTreeMap<(usize, Option<u32>), Vec<Chain>> = BTreeMap::new();
    for chain in section {
        groups.entry((chain.place, chain.level)).or_default().push(chain);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests;
