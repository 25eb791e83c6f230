//! Operators, Catalogs, OperatorRevisions and Actions of a cluster that cannot be read: those of another version of
//! the program may have values that this one does not know.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use kube::api::DynamicObject;
use plimsoll_api::{Catalog, Operator, OperatorRevision};
use plimsoll_operators::observed::{ObservedOperator, read_object};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The Operators, Catalogs and OperatorRevisions that cannot be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnreadableObjects {
    /// The Operators, by name.
    operators: BTreeMap<String, UnreadableOperator>,
    /// What is wrong with the Catalogs, by name.
    catalogs: BTreeMap<String, String>,
    /// What is wrong with the OperatorRevisions, by name.
    revisions: BTreeMap<String, String>,
}

/// An Operator that cannot be read.
#[derive(Debug, Clone)]
struct UnreadableOperator {
    /// The field, and what is wrong with it.
    problem: String,
    /// The rest of it.
    observed: ObservedOperator,
}

impl UnreadableObjects {
    /// Returns the Operators that can be read, by name, and keeps the others.
    pub(super) fn read_operators(
        &mut self,
        objects: Vec<DynamicObject>,
    ) -> BTreeMap<String, Operator> {
        let (readable, others) = divided(objects);
        let others = others.into_iter().map(|it| {
            let observed = ObservedOperator::read(&it.object);
            (it.name, UnreadableOperator { problem: it.problem, observed })
        });
        self.operators = others.collect();
        readable
    }

    /// Returns the Catalogs that can be read, by name, and keeps the others.
    pub(super) fn read_catalogs(
        &mut self,
        objects: Vec<DynamicObject>,
    ) -> BTreeMap<String, Catalog> {
        let (readable, others) = divided(objects);
        self.catalogs = others.into_iter().map(|it| (it.name, it.problem)).collect();
        readable
    }

    /// Returns the OperatorRevisions that can be read, and keeps the others.
    pub(super) fn read_revisions(&mut self, objects: Vec<DynamicObject>) -> Vec<OperatorRevision> {
        let (readable, others) = divided(objects);
        self.revisions = others.into_iter().map(|it| (it.name, it.problem)).collect();
        readable.into_values().collect()
    }

    /// Forgets the Catalogs, since others are chosen.
    pub(super) fn forget_catalogs(&mut self) {
        self.catalogs.clear();
    }

    /// Returns what is wrong with the Catalogs that cannot be read, by name.
    pub(super) fn catalogs(&self) -> &BTreeMap<String, String> {
        &self.catalogs
    }

    /// Returns a line about each object that is left out.
    fn warnings(&self) -> Vec<String> {
        let operators = self.operators.iter().map(|(name, it)| ("Operator", name, &it.problem));
        let catalogs = self.catalogs.iter().map(|(name, problem)| ("Catalog", name, problem));
        let revisions = self.revisions.iter();
        let revisions = revisions.map(|(name, problem)| ("OperatorRevision", name, problem));
        let all = operators.chain(catalogs).chain(revisions);
        all.map(|(kind, name, problem)| left_out(kind, name, problem)).collect()
    }

    /// Prints the objects that are left out, to standard error.
    pub(super) fn warn(&self) {
        self.warnings().iter().for_each(|line| anstream::eprintln!("{line}"));
    }

    /// Fails if an Operator cannot be read.
    ///
    /// # Errors
    ///
    /// When it cannot; the error names the field.
    pub(super) fn require_readable(&self, name: &str) -> Result<(), anyhow::Error> {
        match self.operators.get(name) {
            None => Ok(()),
            Some(it) => bail!("Operator `{name}` cannot be read: {}", it.problem),
        }
    }

    /// Fails if an Operator that cannot be read has a part in a change of some Operators: it is among them,
    /// depends on one of them, or one depends on it.
    ///
    /// # Errors
    ///
    /// When one has; the error names it and the field.
    pub(super) fn require_no_part(&self, names: &BTreeSet<String>) -> Result<(), anyhow::Error> {
        for (name, it) in &self.operators {
            if names.contains(name) {
                self.require_readable(name)?;
            }
            let status = &it.observed.status;
            let dependencies = status.dependencies.iter().map(|it| &it.operator);
            let dependants = status.dependants.iter().map(|it| &it.operator);
            if let Some(other) = dependencies.chain(dependants).find(|it| names.contains(*it)) {
                bail!(
                    "Operator `{name}`, which depends on `{other}` or is required by it, cannot be read: {}",
                    it.problem
                );
            }
        }
        Ok(())
    }

    /// Returns whether all Operators can be read.
    pub(super) fn has_no_operators(&self) -> bool {
        self.operators.is_empty()
    }
}

/// Returns a line about an object that is left out.
pub(super) fn left_out(kind: &str, name: &str, problem: &str) -> String {
    format!("warning: {kind} `{name}` is left out, it cannot be read: {problem}")
}

/// An object that cannot be read.
struct UnreadObject {
    name: String,
    object: Value,
    problem: String,
}

/// Returns the objects that can be read, by name, and the others.
fn divided<K: DeserializeOwned>(
    objects: Vec<DynamicObject>,
) -> (BTreeMap<String, K>, Vec<UnreadObject>) {
    let (mut readable, mut others) = (BTreeMap::new(), Vec::new());
    for object in objects {
        let name = object.metadata.name.clone().unwrap_or_default();
        let object = serde_json::to_value(object).expect("its keys are strings");
        match read_object(&object) {
            Ok(read) => {
                readable.insert(name, read);
            }
            Err(problem) => others.push(UnreadObject { name, object, problem }),
        }
    }
    (readable, others)
}

#[cfg(test)]
mod tests {
    //! What is said of objects that cannot be read, and what goes on without them.

    use serde_json::json;

    use super::*;
    use crate::commands::operator::state::AddOnState;

    fn objects(items: Vec<Value>) -> Vec<DynamicObject> {
        items.into_iter().map(|it| serde_json::from_value(it).expect("an object")).collect()
    }

    /// A cluster with `foo`, and `bar`, which cannot be read, depends on `lib` and is required by `top`.
    fn state() -> AddOnState {
        let mut unreadable = UnreadableObjects::default();
        let operators = unreadable.read_operators(objects(vec![
            json!({ "metadata": { "name": "foo" }, "spec": { "version": "^1" } }),
            json!({
                "metadata": { "name": "bar" },
                "spec": { "deletion": { "crds": "Keep" } },
                "status": {
                    "dependencies": [{ "requirement": "lib", "satisfied": true, "operator": "lib" }],
                    "dependants": [{ "operator": "top", "requirement": "bar" }],
                },
            }),
        ]));
        let catalogs = unreadable.read_catalogs(objects(vec![
            json!({ "metadata": { "name": "main" }, "spec": { "weight": 1 } }),
            json!({ "metadata": { "name": "other" }, "spec": { "weight": "light" } }),
        ]));
        AddOnState { operators, catalogs, unreadable }
    }

    #[test]
    fn what_can_be_read_is_listed_and_the_rest_named_with_its_field() {
        let state = state();
        assert!(state.operators.keys().eq(["foo"]));
        assert_eq!(state.operators["foo"].spec.version, "^1");
        assert!(state.catalogs.keys().eq(["main"]));
        assert_eq!(
            state.unreadable.warnings(),
            [
                "warning: Operator `bar` is left out, it cannot be read: spec.deletion.crds: unknown \
                 variant `Keep`, expected `Delete` or `Orphan`",
                "warning: Catalog `other` is left out, it cannot be read: spec.weight: invalid type: string \
                 \"light\", expected i64",
            ]
        );
        let error = state.operator("bar").expect_err("it cannot be read").to_string();
        assert!(
            error.starts_with("Operator `bar` cannot be read: spec.deletion.crds: "),
            "{error}"
        );
        assert!(state.operator("foo").is_ok());
    }

    #[test]
    fn revisions_that_can_be_read_are_used_and_the_rest_named() {
        let revision = |name: &str, certificates: &str| {
            json!({
                "metadata": { "name": name },
                "spec": {
                    "operator": "foo", "revision": 1, "part": { "number": 1, "of": 1 }, "digest": "",
                    "bundle": { "name": "foo.v1", "version": "1.0.0" }, "namespace": "foo",
                    "objects": [], "certificates": certificates,
                },
            })
        };
        let mut unreadable = UnreadableObjects::default();
        let read = unreadable.read_revisions(objects(vec![
            revision("foo-1", "None"),
            revision("foo-2", "Later"),
            revision("foo-3", "BuiltIn"),
        ]));
        let names = read.iter().filter_map(|it| it.metadata.name.as_deref());
        assert!(names.eq(["foo-1", "foo-3"]));
        let warnings = unreadable.warnings();
        let [warning] = warnings.as_slice() else { panic!("there is one warning") };
        let expected = "warning: OperatorRevision `foo-2` is left out, it cannot be read: \
                        spec.certificates: unknown variant `Later`";
        assert!(warning.starts_with(expected), "{warning}");
    }

    #[test]
    fn changes_go_on_without_operators_that_have_no_part_in_them() {
        let state = state();
        let check = |name: &str, expected: &str| {
            let names = BTreeSet::from([name.to_owned()]);
            let found = state.unreadable.require_no_part(&names);
            let found = found.map_or_else(|error| error.to_string(), |()| String::new());
            let before = found.split(": ").next().unwrap_or_default();
            assert_eq!(before, expected, "{name}");
        };
        check("foo", "");
        check("bar", "Operator `bar` cannot be read");
        let related = |other: &str| {
            format!(
                "Operator `bar`, which depends on `{other}` or is required by it, cannot be read"
            )
        };
        check("lib", &related("lib"));
        check("top", &related("top"));
    }
}
