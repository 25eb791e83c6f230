//! How far each run level of a plan under way has come.

use std::collections::BTreeMap;

use crate::plan::graph;
use crate::progress::Progress;

/// A run level: its manifests have no order but that within a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelView {
    /// Its number; `None` for files that name none.
    pub level: Option<u32>,
    /// Steps that are done.
    pub done: usize,
    /// All its steps.
    pub total: usize,
    /// The components that have steps which are not done, in the order of the payload.
    pub components: Vec<String>,
}

/// The run levels of a plan by number, those without one first. `done` are the steps that are done,
/// sorted.
pub fn levels(progress: &Progress, done: &[usize]) -> Vec<LevelView> {
    let mut levels: BTreeMap<Option<u32>, LevelView> = BTreeMap::new();
    for (index, step) in progress.plan().of_release().iter().enumerate() {
        let position = graph::position(&step.manifest.file);
        let level = position.as_ref().map(|position| position.level);
        let view = levels.entry(level).or_insert_with(|| LevelView {
            level,
            done: 0,
            total: 0,
            components: Vec::new(),
        });
        view.total += 1;
        if done.binary_search(&index).is_ok() {
            view.done += 1;
        } else if let Some(position) = position
            && !view.components.iter().any(|name| name == position.component)
        {
            view.components.push(position.component.to_owned());
        }
    }
    levels.into_values().collect()
}
