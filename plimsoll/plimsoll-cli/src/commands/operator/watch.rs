//! Watches of objects, as changes of one object after another.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt as _, stream};
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};

/// A change of an object.
#[derive(Debug)]
pub(super) struct ObjectChange {
    /// The name of the object.
    pub(super) name: String,
    /// The object; `None` if it was deleted.
    pub(super) object: Option<DynamicObject>,
}

impl ObjectChange {
    fn seen(object: DynamicObject) -> Self {
        let name = object.metadata.name.clone().unwrap_or_default();
        Self { name, object: Some(object) }
    }

    fn gone(name: String) -> Self {
        Self { name, object: None }
    }
}

/// Returns the changes of objects from now on, beginning with all that there are; `known` are the names of those
/// that are deleted if they are not among these. A watch that fails is begun again.
pub(super) fn changes(
    api: Api<DynamicObject>,
    config: watcher::Config,
    known: BTreeSet<String>,
) -> impl Stream<Item = ObjectChange> {
    let mut names = KnownNames { known, listed: BTreeSet::new() };
    let events = watcher::watcher(api, config).default_backoff();
    events.flat_map(move |event| {
        let changes = event.map(|event| names.changes(event)).unwrap_or_else(|error| {
            tracing::debug!(%error, "the watch begins again");
            Vec::new()
        });
        stream::iter(changes)
    })
}

/// The names of the objects of a watch.
struct KnownNames {
    known: BTreeSet<String>,
    /// Those of the list that is being read.
    listed: BTreeSet<String>,
}

impl KnownNames {
    /// Returns the changes that an event reports.
    fn changes(&mut self, event: Event<DynamicObject>) -> Vec<ObjectChange> {
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let change = ObjectChange::seen(object);
                self.listed.insert(change.name.clone());
                vec![change]
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone = self.known.difference(&listed).cloned().map(ObjectChange::gone);
                let gone = gone.collect();
                self.known = listed;
                gone
            }
            Event::Apply(object) => {
                let change = ObjectChange::seen(object);
                self.known.insert(change.name.clone());
                vec![change]
            }
            Event::Delete(object) => {
                let name = object.metadata.name.unwrap_or_default();
                self.known.remove(&name);
                vec![ObjectChange::gone(name)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::ApiResource;
    use plimsoll_api::OPERATOR;
    use plimsoll_controller::api_resource;

    use super::*;

    #[test]
    fn what_a_list_lacks_is_gone() {
        let resource: ApiResource = api_resource(OPERATOR);
        let object = |name: &str| DynamicObject::new(name, &resource);
        let known = BTreeSet::from(["bar".to_owned(), "foo".to_owned()]);
        let mut names = KnownNames { known, listed: BTreeSet::new() };
        let mut check = |event: Event<DynamicObject>, expected: &[&str]| {
            let changes = names.changes(event).into_iter();
            let changes: Vec<String> = changes
                .map(|it| if it.object.is_some() { it.name } else { format!("-{}", it.name) })
                .collect();
            assert_eq!(changes, expected);
        };
        check(Event::Init, &[]);
        check(Event::InitApply(object("foo")), &["foo"]);
        check(Event::InitDone, &["-bar"]);
        check(Event::Apply(object("baz")), &["baz"]);
        check(Event::Delete(object("foo")), &["-foo"]);
        // A watch that begins again.
        check(Event::Init, &[]);
        check(Event::InitApply(object("foo")), &["foo"]);
        check(Event::InitDone, &["-baz"]);
    }
}
