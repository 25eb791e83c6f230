//! `plimsoll operator abort`: aborting the deletion of an Operator.

mod record;
mod revisions;

use std::fmt::Debug;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, TestOperation};
use kube::api::{DynamicObject, Patch, PostParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, Error, Resource};
use plimsoll_api::olm::{ABORT_OF_ANNOTATION, DELETION_FINALIZER};
use plimsoll_api::{OPERATOR, Operator};
use plimsoll_simulation::cluster_state::api;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::record::AbortRecord;
use self::revisions::KeptRevisions;
use super::dry_run::DryRun;
use super::state::{AddOnState, status};
use super::{FIELD_MANAGER, patch_parameters};
use crate::arguments::name;
use crate::exit;

/// The time that the controller may take to release an Operator whose deletion is aborted.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The finalizer that an API server adds to what is deleted after its dependents.
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
/// The finalizer that an API server adds to what is deleted without its dependents.
const ORPHAN_FINALIZER: &str = "orphan";

/// Arguments of `plimsoll operator abort`.
#[derive(Debug, Args)]
pub struct AbortArguments {
    /// Operator whose deletion is aborted
    #[arg(value_parser = name::operator())]
    name: String,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Runs `plimsoll operator abort`: keeps what is left of an Operator that is being deleted, and
/// manages it again.
///
/// An API server cannot undo a deletion. So the finalizers of the Operator are removed without
/// another object being deleted, and the Operator is created again with the same spec. It takes over
/// the OperatorRevisions and the objects that are left, and applies the missing ones. OperatorRevisions that are
/// being deleted, too, are created again. All of this is recorded in the cluster before: an abort that was
/// interrupted goes on when it is run again.
///
/// # Errors
///
/// When the cluster cannot be reached, the Operator is not being deleted, or it has finalizers that
/// other clients added.
pub(super) async fn run(
    client: &Client,
    arguments: &AbortArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let AbortArguments { name, dry_run } = arguments;
    let state = AddOnState::read(client).await?;
    let found = AbortRecord::read(client, name).await?;
    let there = api(client, OPERATOR).get_opt(name).await;
    let there = there.with_context(|| format!("failed to read Operator `{name}`"))?;
    let planned = format!("the deletion of {name} would be aborted, and {name} created again");
    let (kept, successor) = match there {
        Some(whole) if whole.metadata.deletion_timestamp.is_some() => {
            if let Some(others) = finalizers_of_others(state.operator(name)?) {
                bail!(
                    "Operator `{name}` has finalizers of other clients: {others}; its deletion can be \
                     aborted once they are removed by whoever added them"
                );
            }
            if dry_run.is_set() {
                if dry_run.is_on_server() {
                    let operators: Api<Operator> = Api::all(client.clone());
                    let tried = let_go(&operators, name, &whole, true).await;
                    tried.with_context(|| {
                        format!("failed to abort the deletion of Operator `{name}`")
                    })?;
                }
                writeln!(out, "{planned}")?;
                return Ok(exit::SUCCESS.into());
            }
            (begin(client, name, &whole, found).await?, None)
        }
        there => {
            let Some(record) = found else {
                state.operator(name)?;
                bail!("Operator `{name}` is not being deleted: there is nothing to abort");
            };
            let is_done = there.as_ref().is_some_and(|it| record.is_done(it));
            if let Some(there) = there.as_ref().filter(|_| !is_done) {
                record.require_successor(there)?;
            }
            if dry_run.is_set() {
                writeln!(out, "{planned}: that was interrupted")?;
                return Ok(exit::SUCCESS.into());
            }
            if is_done {
                record.forget().await?;
                writeln!(out, "deletion of {name} aborted")?;
                return Ok(exit::SUCCESS.into());
            }
            (KeptRevisions::recorded(client, record), there)
        }
    };
    complete(client, name, &kept, successor).await?;
    writeln!(out, "deletion of {name} aborted")?;
    Ok(exit::SUCCESS.into())
}

/// Takes the OperatorRevisions of an Operator that is being deleted, and lets the Operator go.
async fn begin(
    client: &Client,
    name: &str,
    whole: &DynamicObject,
    earlier: Option<AbortRecord>,
) -> Result<KeptRevisions, anyhow::Error> {
    let operators: Api<Operator> = Api::all(client.clone());
    let kept = KeptRevisions::take(client, whole, earlier).await?;
    match release(&operators, name, whole).await {
        Ok(true) => Ok(kept),
        Ok(false) => bail!(
            "Operator `{name}` has other finalizers, and is still there; once it is gone, `operator abort \
             {name}` creates it again"
        ),
        Err(error) => {
            if is_still_there(&error) {
                kept.give_back().await?;
            }
            Err(error).with_context(|| format!("failed to abort the deletion of Operator `{name}`"))
        }
    }
}

/// Creates the Operator again unless its successor is there, and gives it what the record has. Each step can be
/// repeated.
async fn complete(
    client: &Client,
    name: &str,
    kept: &KeptRevisions,
    successor: Option<DynamicObject>,
) -> Result<(), anyhow::Error> {
    let operators: Api<Operator> = Api::all(client.clone());
    // It is paused until it has its revisions and its history.
    let created = match successor {
        Some(there) => there,
        None => create_again(client, name, &kept.record).await?,
    };
    let numbers = kept.give_to(created.metadata.uid.as_deref().unwrap_or_default()).await?;
    let is_installed = kept.write_status(&operators, &created, &numbers).await?;
    if is_installed {
        taken_over(&operators, name).await?;
    }
    let resumed = json!({
        "metadata": { "uid": created.metadata.uid, "annotations": { ABORT_OF_ANNOTATION: null } },
        "spec": { "paused": kept.record.operator.data["spec"]["paused"] },
    });
    operators
        .patch(name, &patch_parameters(false), &Patch::Merge(resumed))
        .await
        .with_context(|| format!("Operator `{name}` is paused: failed to set spec.paused back"))?;
    kept.record.forget().await
}

/// Returns whether an Operator is still there although it was to be let go: the request was refused. Without an
/// answer, and after an error within the server, it may be gone.
fn is_still_there(error: &Error) -> bool {
    matches!(error, Error::Api(status) if (400..500).contains(&status.code) && status.code != 404)
}

/// Returns the finalizers of an Operator that neither the controller nor the API server added, as text;
/// `None` if there are none.
fn finalizers_of_others(operator: &Operator) -> Option<String> {
    let finalizers = operator.metadata.finalizers.iter().flatten();
    let others = finalizers.filter(|it| !is_expected(it));
    let others: Vec<&str> = others.map(String::as_str).collect();
    (!others.is_empty()).then(|| others.join(", "))
}

/// Returns whether a finalizer is one that the controller or the API server adds.
fn is_expected(finalizer: &str) -> bool {
    matches!(finalizer, DELETION_FINALIZER | FOREGROUND_FINALIZER | ORPHAN_FINALIZER)
}

/// Removes the finalizers of an Operator that is being deleted, and waits until it is gone. Returns whether it is
/// within [`TIMEOUT`].
///
/// # Errors
///
/// When its finalizers have changed since it was read, or it cannot be written.
async fn release(
    operators: &Api<Operator>,
    name: &str,
    whole: &DynamicObject,
) -> Result<bool, Error> {
    let_go(operators, name, whole, false).await?;
    Ok(is_gone(operators, name, whole.metadata.uid.as_deref()).await)
}

/// Removes the finalizers of an Operator, unless they have changed since it was read.
async fn let_go(
    operators: &Api<Operator>,
    name: &str,
    whole: &DynamicObject,
    is_dry_run: bool,
) -> Result<(), Error> {
    let uid = whole.metadata.uid.as_deref();
    let field = |name: &str| PointerBuf::from_tokens(["metadata", name]);
    let is = |name: &str, value| PatchOperation::Test(TestOperation { path: field(name), value });
    let patch = Patch::<()>::Json(json_patch::Patch(vec![
        is("uid", json!(uid)),
        is("finalizers", json!(whole.metadata.finalizers)),
        PatchOperation::Remove(RemoveOperation { path: field("finalizers") }),
    ]));
    operators.patch_metadata(name, &patch_parameters(is_dry_run), &patch).await.map(|_| ())
}

/// Waits until the object with a uid is gone. Returns whether it is within [`TIMEOUT`].
async fn is_gone<K>(objects: &Api<K>, name: &str, uid: Option<&str>) -> bool
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let gone = watch_object(objects.clone(), name).try_skip_while(|object| {
        let is_there = object.as_ref().is_some_and(|it| it.meta().uid.as_deref() == uid);
        async move { Ok(is_there) }
    });
    tokio::time::timeout(TIMEOUT, async { pin!(gone).next().await }).await.is_ok()
}

/// Waits until the controller has taken over the installed revision: until then, it would install the
/// bundle anew.
///
/// # Errors
///
/// When it does not within [`TIMEOUT`].
async fn taken_over(operators: &Api<Operator>, name: &str) -> Result<(), anyhow::Error> {
    let mut seen = pin!(watch_object(operators.clone(), name));
    let taken = async {
        while let Some(object) = seen.next().await {
            // The watch restarts by itself.
            let Ok(Some(operator)) = object else { continue };
            if status(&operator).bundle.is_some() {
                return;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, taken).await.map_err(|_| {
        anyhow!(
            "Operator `{name}` is paused: the controller has not taken over its OperatorRevisions; once it \
             runs, `operator abort {name}` goes on"
        )
    })
}

/// Creates an Operator again as it was stored, including fields that this program does not know, but
/// paused.
///
/// # Errors
///
/// When it is refused.
async fn create_again(
    client: &Client,
    name: &str,
    record: &AbortRecord,
) -> Result<DynamicObject, anyhow::Error> {
    let parameters =
        PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let object = Deserialize::deserialize(again(name, &record.operator))?;
    api(client, OPERATOR).create(&parameters, &object).await.with_context(|| {
        format!("failed to create Operator `{name}` again; `operator abort {name}` tries it again")
    })
}

/// Returns the successor of an Operator. It has the finalizer of the controller: a deletion of it waits while it is
/// paused, so that its OperatorRevisions do not go before it is complete.
fn again(name: &str, whole: &DynamicObject) -> Value {
    let mut spec = whole.data["spec"].clone();
    spec["paused"] = true.into();
    let mut annotations = whole.metadata.annotations.clone().unwrap_or_default();
    let uid = whole.metadata.uid.clone().unwrap_or_default();
    annotations.insert(ABORT_OF_ANNOTATION.to_owned(), uid);
    json!({
        "apiVersion": OPERATOR.api_version(),
        "kind": OPERATOR.kind,
        "metadata": {
            "name": name,
            "labels": whole.metadata.labels,
            "annotations": annotations,
            "finalizers": [DELETION_FINALIZER],
        },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn an_operator_is_still_there_if_the_request_to_let_it_go_was_refused() {
        for (code, expected) in
            [(403, true), (409, true), (422, true), (404, false), (500, false), (504, false)]
        {
            let error = Error::Api(Box::new(Status::failure("", "").with_code(code)));
            assert_eq!(is_still_there(&error), expected, "{code}");
        }
        assert!(!is_still_there(&Error::Service(anyhow!("the wire is cut").into())), "no answer");
    }

    #[test]
    fn a_successor_is_held_and_names_its_predecessor() {
        let whole = json!({
            "apiVersion": "olm.io/v1", "kind": "Operator",
            "metadata": { "name": "bar", "uid": "1", "labels": { "a": "b" } },
            "spec": { "version": "1.2.1", "unknown": 1 },
        });
        let whole: DynamicObject = serde_json::from_value(whole).expect("an object");
        let expected = json!({
            "apiVersion": "olm.io/v1", "kind": "Operator",
            "metadata": {
                "name": "bar", "labels": { "a": "b" },
                "annotations": { "olm.io/abort-of": "1" },
                "finalizers": [DELETION_FINALIZER],
            },
            "spec": { "version": "1.2.1", "unknown": 1, "paused": true },
        });
        assert_eq!(again("bar", &whole), expected);
    }
}
