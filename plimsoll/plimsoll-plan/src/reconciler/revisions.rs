//! Whether the API server's storage goes back to an earlier state, as one that is restored from a
//! backup does.
//!
//! No response says so. A watch that continues at a revision which the storage has not reached again shows
//! nothing, and one at a revision that it has passed misses what came before. Newer revisions prove
//! nothing: a busy server passes those that were seen within seconds, and some restores raise them on
//! purpose. But a storage is only replaced under a server that stops or ends its watches. So a watch
//! whose connection was lost lists its objects again, and the list is compared with what is known of
//! them: an object at an earlier revision than before, or one that is there although it was deleted, is
//! from an earlier state. Whatever a list shows at its known or a later revision is as it was, or has
//! changed, which is handled like any change. A cluster at rest costs no requests.
//!
//! Only revisions of one object are compared: a server may keep resources in several storages.

use std::collections::BTreeMap;

use plimsoll_api::{CompactName, NamespacedName};

/// The storage went back to an earlier state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageRollback {
    /// The newest revision of an object that was known.
    pub seen: u64,
    /// Its revision now.
    pub now: u64,
}

/// The objects of one watch, as it showed them last.
#[derive(Debug, Clone, Default)]
pub struct KnownObjects {
    /// The revisions of those that exist; while they are listed, of those that were listed.
    existing: BTreeMap<CompactName, u64>,
    /// While they are listed: the revisions of those that existed before and were not listed yet;
    /// `None` otherwise.
    unlisted: Option<BTreeMap<CompactName, u64>>,
    /// The revisions of those that are gone and may return.
    gone: BTreeMap<CompactName, u64>,
}

impl KnownObjects {
    /// A list of all objects begins.
    pub fn list_begins(&mut self) {
        let unlisted = self.unlisted.get_or_insert_default();
        unlisted.append(&mut self.existing);
    }

    /// An object exists at a revision. A list that shows an earlier one than was known is of an earlier
    /// state; events of a watch may come twice.
    pub fn shown(&mut self, name: &NamespacedName, revision: u64) -> Option<StorageRollback> {
        let id = CompactName::from(name);
        let unlisted = self.unlisted.as_mut().and_then(|it| it.remove(&id));
        let gone = self.gone.remove(&id);
        let before = self.existing.insert(id, revision).or(unlisted).or(gone);
        let seen = before.filter(|seen| self.unlisted.is_some() && revision < *seen)?;
        Some(StorageRollback { seen, now: revision })
    }

    /// An object is gone, since a revision if that is known. It `may_return` if a client would create
    /// it again: then it is remembered, otherwise there would be no end of them.
    pub fn gone(&mut self, name: &NamespacedName, revision: u64, may_return: bool) {
        let id = CompactName::from(name);
        self.existing.remove(&id);
        match may_return {
            true => self.gone.insert(id, revision),
            false => self.gone.remove(&id),
        };
    }

    /// The list is complete; the objects that are gone, with the revision that they were last shown at.
    pub fn listed(&mut self) -> BTreeMap<NamespacedName, u64> {
        let unlisted = self.unlisted.take().unwrap_or_default();
        unlisted.into_iter().map(|(id, revision)| ((&id).into(), revision)).collect()
    }
}

/// The revision of an object that others than its watch know better: who writes it does.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrittenRevision {
    /// The newest revision that is known.
    newest: u64,
    /// The least revision that the list under way has to show; `None` when there is none.
    expected: Option<u64>,
}

impl WrittenRevision {
    /// A write of the object was answered.
    pub fn written(&mut self, revision: u64) {
        self.newest = self.newest.max(revision);
    }

    /// The connection of its watch was lost: it is going to be listed.
    pub fn interrupted(&mut self) {
        self.expected = Some(self.newest);
    }

    /// The watch showed it.
    pub fn shown(&mut self, revision: u64) -> Option<StorageRollback> {
        let expected = self.expected.take().unwrap_or_default();
        self.newest = self.newest.max(revision);
        let is_earlier = revision < expected;
        is_earlier.then_some(StorageRollback { seen: expected, now: revision })
    }
}

#[cfg(test)]
mod tests {
    //! Scripts of what a watch shows, and what follows.

    use super::*;

    /// Runs a script of lines `EVENT => OUTCOME`.
    #[track_caller]
    fn check(script: &str) {
        let mut known = KnownObjects::default();
        let mut written = WrittenRevision::default();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let named = |name: &str| NamespacedName { namespace: String::new(), name: name.to_owned() };
        let rollback = |found: Option<StorageRollback>| match found {
            Some(StorageRollback { seen, now }) => format!("back from {seen} to {now}"),
            None => String::new(),
        };
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (event, expected) = line.split_once("=>").unwrap_or((line, ""));
            let words: Vec<&str> = event.split_whitespace().collect();
            let outcome = match words[..] {
                ["list"] => {
                    known.list_begins();
                    String::new()
                }
                ["listed"] => {
                    let gone = known.listed();
                    gone.iter().for_each(|(id, revision)| known.gone(id, *revision, true));
                    gone.into_keys().map(|id| id.name).collect::<Vec<_>>().join(" ")
                }
                ["written", revision] => {
                    written.written(number(revision));
                    String::new()
                }
                ["interrupted"] => {
                    written.interrupted();
                    String::new()
                }
                ["showed", revision] => rollback(written.shown(number(revision))),
                ["gone", id, revision] => {
                    known.gone(&named(id), number(revision), id != "namespace");
                    String::new()
                }
                [id, revision] => rollback(known.shown(&named(id), number(revision))),
                _ => panic!("unknown line {line:?}"),
            };
            assert_eq!(outcome, expected.trim(), "after `{event}`");
        }
    }

    #[test]
    fn a_list_of_an_earlier_state_is_noticed_however_new_its_revision_is() {
        check(
            "list
             a 10
             b 11
             listed =>
             a 20
             list
             b 31 =>
             a 12 => back from 20 to 12
             listed =>",
        );
    }

    #[test]
    fn what_was_deleted_and_is_there_again_as_before_is_of_an_earlier_state() {
        check(
            "list
             a 10
             namespace 11
             listed =>
             gone a 20
             gone namespace 21
             list
             namespace 11 =>
             a 10 => back from 20 to 10
             listed =>
             gone a 30
             list
             a 40 =>",
        );
    }

    #[test]
    fn what_a_list_does_not_show_any_more_is_gone() {
        check(
            "list
             a 10
             b 11
             listed =>
             list
             b 11 =>
             listed => a
             list
             b 11 =>
             listed =>",
        );
    }

    #[test]
    fn a_list_that_begins_again_forgets_nothing() {
        check(
            "list
             a 10
             b 11
             c 12
             listed =>
             list
             a 10
             list
             a 10 =>
             b 9 => back from 11 to 9
             listed => c",
        );
    }

    #[test]
    fn events_that_come_twice_say_nothing() {
        check(
            "list
             listed =>
             a 10
             a 12
             a 10 =>
             a 12 =>",
        );
    }

    #[test]
    fn a_list_lacks_a_write_that_was_answered_before() {
        check(
            "written 10
             showed 9 =>
             interrupted
             written 12 =>
             showed 11 =>
             written 15
             interrupted
             showed 14 => back from 15 to 14
             showed 13 =>",
        );
    }
}
