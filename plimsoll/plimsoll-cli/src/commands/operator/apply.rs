//! The writes of Operators to a cluster, all of them or, if the API server rejects one, none.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Context as _;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, TestOperation};
use kube::api::{DeleteParams, DynamicObject, Patch, PostParams, Preconditions};
use kube::{Api, Client, Error};
use plimsoll_api::olm::{CHANGE_SET_ANNOTATION, INSTALLED_AS_LABEL, INSTALLED_AS_USER};
use plimsoll_api::{OPERATOR, Operator};
use plimsoll_operators::manifest::{ChangeSetEdit, OperatorManifest};
use plimsoll_operators::update::is_set_of_update;
use plimsoll_simulation::cluster_state::api;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FIELD_MANAGER, dry_run_suffix, patch_parameters};

/// The maximum number of attempts to undo a change while the controller writes the same Operator.
const UNDO_ATTEMPTS_MAX: usize = 10;
/// The metadata that people declare.
const DECLARED_METADATA: [&str; 3] = ["name", "labels", "annotations"];

/// A change of an Operator.
pub(super) struct OperatorWrite {
    /// Name of the Operator.
    pub(super) name: String,
    /// The write that makes the change.
    pub(super) action: WriteAction,
}

/// A write of an Operator.
pub(super) enum WriteAction {
    /// Creates the Operator.
    Create {
        /// The object to create.
        object: Value,
    },
    /// Patches the Operator.
    Patch {
        /// The merge patch.
        patch: Value,
        /// The merge patch that undoes the change.
        undo: Value,
    },
}

impl OperatorWrite {
    /// Returns the write of an Operator; `there` is the one of the cluster.
    pub(super) fn new(manifest: &OperatorManifest, there: Option<&Operator>) -> Self {
        let name = manifest.name.clone();
        let Some(there) = there else {
            return Self { name, action: WriteAction::Create { object: manifest.object() } };
        };
        let (set_before, asked_before) = (change_set(there), installed_as(there));
        let spec = json!(there.spec);
        let version = [("version", manifest.version.as_str())];
        let fields = version.into_iter().chain(manifest.sources());
        let changed: Vec<(&str, &str)> = fields
            .filter(|(field, value)| spec[*field].as_str().unwrap_or_default() != *value)
            .collect();
        let patch =
            |value: &dyn Fn(&str, &str) -> Value, set: Option<&str>, asked: Option<&str>| {
                let mut patch = json!({ "metadata": { "uid": there.metadata.uid } });
                if manifest.change_set != ChangeSetEdit::Keep {
                    patch["metadata"]["annotations"] = json!({ (CHANGE_SET_ANNOTATION): set });
                }
                if manifest.becomes_requested {
                    patch["metadata"]["labels"] = json!({ (INSTALLED_AS_LABEL): asked });
                }
                for (field, wanted) in &changed {
                    patch["spec"][*field] = value(field, wanted);
                }
                patch
            };
        let action = WriteAction::Patch {
            patch: patch(
                &|_, wanted| json!(wanted),
                manifest.change_set.value(),
                Some(INSTALLED_AS_USER),
            ),
            // A field that was absent is removed.
            undo: patch(&|field, _| spec[field].clone(), set_before, asked_before),
        };
        Self { name, action }
    }

    /// Returns whether it creates the Operator.
    pub(super) fn is_creation(&self) -> bool {
        matches!(self.action, WriteAction::Create { .. })
    }

    /// Returns the object as the write asks for it, so that it can be applied at any time; `there` is the one of the cluster.
    pub(super) fn requested(&self, there: Option<&Operator>) -> Value {
        match &self.action {
            WriteAction::Create { object } => object.clone(),
            WriteAction::Patch { patch, undo: _ } => {
                let mut object = json!(there);
                json_patch::merge(&mut object, patch);
                as_declared(object)
            }
        }
    }

    async fn send(
        &self,
        operators: &Api<DynamicObject>,
        dry_run: bool,
    ) -> Result<DynamicObject, anyhow::Error> {
        let (verb, answer) = match &self.action {
            WriteAction::Create { object } => {
                let object = DynamicObject::deserialize(object)?;
                let field_manager = Some(FIELD_MANAGER.to_owned());
                let parameters = PostParams { dry_run, field_manager };
                ("create", operators.create(&parameters, &object).await)
            }
            WriteAction::Patch { patch, undo: _ } => {
                let (parameters, patch) = (patch_parameters(dry_run), Patch::Merge(patch));
                ("update", operators.patch(&self.name, &parameters, &patch).await)
            }
        };
        answer.with_context(|| format!("failed to {verb} Operator `{}`", self.name))
    }

    /// Undoes the write.
    async fn undo(&self, operators: &Api<DynamicObject>, written: &DynamicObject) {
        let undone = match &self.action {
            WriteAction::Create { .. } => {
                let uid = written.metadata.uid.clone();
                let preconditions = Some(Preconditions { uid, resource_version: None });
                let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
                operators.delete(&self.name, &parameters).await.map(|_| ())
            }
            WriteAction::Patch { undo, .. } => self.undo_patch(operators, undo, written).await,
        };
        match undone {
            // Undone, or the Operator is gone.
            Ok(()) => {}
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                anstream::eprintln!("failed to change Operator `{}` back: {error}", self.name);
            }
        }
    }

    /// Undoes the patch of an Operator, unless another client has changed the same fields since.
    async fn undo_patch(
        &self,
        operators: &Api<DynamicObject>,
        undo: &Value,
        written: &DynamicObject,
    ) -> Result<(), Error> {
        let written = json!(written);
        let mut attempts = UNDO_ATTEMPTS_MAX;
        loop {
            let there = operators.get(&self.name).await?;
            let mut patch = undo.clone();
            patch["metadata"]["resourceVersion"] = json!(there.metadata.resource_version);
            if !is_same_in(undo, &written, &json!(there)) {
                anstream::eprintln!(
                    "Operator `{}` is not changed back: it has been changed since",
                    self.name
                );
                return Ok(());
            }
            attempts -= 1;
            let patch = Patch::Merge(patch);
            match operators.patch(&self.name, &patch_parameters(false), &patch).await {
                // The controller has written the status in the meantime.
                Err(Error::Api(status)) if status.code == 409 && attempts > 0 => {}
                other => return other.map(|_| ()),
            }
        }
    }
}

/// Returns an object without the ownership of its fields, as kubectl prints it.
fn without_managers(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Returns an object without what the API server and controllers write.
fn as_declared(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| DECLARED_METADATA.contains(&field.as_str()));
    }
    object
}

/// Returns whether two objects have the same values in the fields of a merge patch.
fn is_same_in(patch: &Value, one: &Value, other: &Value) -> bool {
    match patch {
        Value::Object(fields) => {
            fields.iter().all(|(name, field)| is_same_in(field, &one[name], &other[name]))
        }
        _ => one == other,
    }
}

/// Writes Operators in order, after a dry run of all of them. Returns the objects as the API server has them.
///
/// # Errors
///
/// When the API server rejects one; those that were written are changed back then.
pub(super) async fn apply(
    client: &Client,
    writes: &[OperatorWrite],
    out: &mut dyn Write,
) -> Result<Vec<Value>, anyhow::Error> {
    let operators: Api<DynamicObject> = api(client, OPERATOR);
    check(client, writes).await?;
    let mut written: Vec<(&OperatorWrite, DynamicObject)> = Vec::new();
    for write in writes {
        match write.send(&operators, false).await {
            Ok(object) => written.push((write, object)),
            Err(error) => {
                for (write, object) in written.iter().rev() {
                    write.undo(&operators, object).await;
                }
                return Err(error);
            }
        }
    }
    report(writes, false, out)?;
    Ok(written.iter().map(|(_, object)| without_managers(json!(object))).collect())
}

/// Makes a dry run of the writes, and prints the result. Returns the objects as the API server would have them.
///
/// # Errors
///
/// When the API server rejects one.
pub(super) async fn dry_run_writes(
    client: &Client,
    writes: &[OperatorWrite],
    out: &mut dyn Write,
) -> Result<Vec<Value>, anyhow::Error> {
    let checked = check(client, writes).await?;
    report(writes, true, out)?;
    Ok(checked)
}

async fn check(client: &Client, writes: &[OperatorWrite]) -> Result<Vec<Value>, anyhow::Error> {
    let operators: Api<DynamicObject> = api(client, OPERATOR);
    let mut checked = Vec::new();
    for write in writes {
        checked.push(without_managers(json!(write.send(&operators, true).await?)));
    }
    Ok(checked)
}

fn report(
    writes: &[OperatorWrite],
    is_dry_run: bool,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let suffix = dry_run_suffix(is_dry_run);
    for OperatorWrite { name, action } in writes {
        let done = match action {
            WriteAction::Create { .. } => "created",
            WriteAction::Patch { .. } => "configured",
        };
        writeln!(out, "operator.olm.io/{name} {done}{suffix}")?;
    }
    Ok(())
}

/// Removes the annotation of a completed change set, so that its members are updated separately
/// again.
///
/// # Errors
///
/// When a request fails.
pub(super) async fn leave_change_set(
    client: &Client,
    names: impl Iterator<Item = &str>,
    change_set: &str,
) -> Result<(), anyhow::Error> {
    let operators: Api<DynamicObject> = api(client, OPERATOR);
    let path = PointerBuf::from_tokens(["metadata", "annotations", CHANGE_SET_ANNOTATION]);
    let is_ours = TestOperation { path: path.clone(), value: change_set.into() };
    let patch =
        vec![PatchOperation::Test(is_ours), PatchOperation::Remove(RemoveOperation { path })];
    let patch = Patch::<()>::Json(json_patch::Patch(patch));
    for name in names {
        match operators.patch(name, &patch_parameters(false), &patch).await {
            // Removed, or the Operator is gone or in another change set.
            Ok(_) => {}
            Err(Error::Api(status)) if matches!(status.code, 404 | 422) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("failed to update Operator `{name}`"));
            }
        }
    }
    Ok(())
}

/// Ends the change set of an Operator that is being deleted, if a plan made it and could not remove it: the other
/// members would wait for the deleted one. A failure is a note.
pub(super) async fn end_change_set(
    client: &Client,
    operators: &BTreeMap<String, Operator>,
    deleted: &str,
) {
    let set = operators.get(deleted).and_then(change_set);
    let Some(set) = set.filter(|it| is_set_of_update(it)) else { return };
    let members = operators.iter().filter(|(name, it)| {
        name.as_str() != deleted && change_set(it).is_some_and(|other| other == set)
    });
    let members = members.map(|(name, _)| name.as_str());
    if let Err(error) = leave_change_set(client, members, set).await {
        anstream::eprintln!(
            "note: the other Operators of change set {set} wait for {deleted}: {error:#}"
        );
    }
}

/// Returns the annotation of an Operator's change set.
fn change_set(operator: &Operator) -> Option<&str> {
    operator.metadata.annotations.as_ref()?.get(CHANGE_SET_ANNOTATION).map(String::as_str)
}

/// Returns the label that says who asked for an Operator.
fn installed_as(operator: &Operator) -> Option<&str> {
    operator.metadata.labels.as_ref()?.get(INSTALLED_AS_LABEL).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_requested_of_an_operator_can_be_applied_later() {
        let there: Operator = serde_json::from_value(json!({
            "apiVersion": "olm.io/v1",
            "kind": "Operator",
            "metadata": {
                "name": "foo",
                "labels": { "team": "quay" },
                "uid": "1",
                "resourceVersion": "2",
                "generation": 3,
                "finalizers": ["olm.io/delete-objects"],
            },
            "spec": { "version": "1.2.3" },
            "status": {},
        }))
        .expect("an Operator");
        let manifest = OperatorManifest {
            name: "foo".to_owned(),
            version: "1.2.5".to_owned(),
            ..OperatorManifest::default()
        };
        let requested = OperatorWrite::new(&manifest, Some(&there)).requested(Some(&there));
        let metadata = json!({ "name": "foo", "labels": { "team": "quay" } });
        assert_eq!(requested["metadata"], metadata);
        assert_eq!(requested["spec"]["version"], "1.2.5");
        assert_eq!(requested["status"], Value::Null);
    }

    #[test]
    fn the_label_of_a_dependency_that_is_asked_for_is_changed_and_changed_back() {
        let there: Operator = serde_json::from_value(json!({
            "apiVersion": "olm.io/v1",
            "kind": "Operator",
            "metadata": { "name": "foo", "labels": { "olm.io/installed-as": "dependency" } },
            "spec": { "version": "1.2.3" },
        }))
        .expect("an Operator");
        let label = |of: &Value| of["metadata"]["labels"]["olm.io/installed-as"].clone();
        for (becomes_requested, expected) in [(true, json!("user")), (false, Value::Null)] {
            let manifest = OperatorManifest {
                name: "foo".to_owned(),
                version: "1.2.3".to_owned(),
                becomes_requested,
                ..OperatorManifest::default()
            };
            let write = OperatorWrite::new(&manifest, Some(&there));
            let WriteAction::Patch { patch, undo } = &write.action else { panic!("it exists") };
            assert_eq!(label(patch), expected);
            let before = if becomes_requested { json!("dependency") } else { Value::Null };
            assert_eq!(label(undo), before);
        }
    }
}
