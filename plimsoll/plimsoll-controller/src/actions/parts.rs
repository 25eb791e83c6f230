//! What is too large for the status of an Action, in ActionParts: large plans and the results of
//! queries.
//!
//! Parts are created before the status that refers to them. Those of a plan never change: how far
//! its changes are is in the status, which has those that have begun, without what they write.

use std::collections::BTreeSet;

use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::action::{
    ActionStatus, ChangeState, PartContent, PartReference, PlannedChange,
};
use plimsoll_api::{ACTION, ACTION_PART, NamespacedName};
use plimsoll_operators::actions::lifecycle::RESULT_LENGTH_MAX;
use plimsoll_operators::actions::parts::{
    join, large_plan, part_name, plan_digest, read_plan, reference, split, with_progress,
    without_progress,
};
use plimsoll_operators::actions::report::ActionObject;
use serde_json::{Value, json};

use crate::resources::api_resource;
use crate::write::Writer;

/// The label of an ActionPart: uid of its Action.
const UID_LABEL: &str = "olm.io/action-uid";
/// The maximum length of the name of an Action in the names of its parts, in bytes.
const NAME_LENGTH_MAX: usize = 200;
/// The maximum length of the name of an object, in bytes.
const OBJECT_NAME_LENGTH_MAX: usize = 253;
/// What API servers answer, with the code 500, if an object is too large for their storage.
const TOO_LARGE: [&str; 2] = ["etcdserver: request is too large", "message larger than max"];
/// The number of digits of the digest in the names of parts.
const DIGITS: usize = 8;
/// The maximum length of the message of a change whose plan is in parts, in bytes.
const MESSAGE_LENGTH_MAX: usize = 256;

/// Why parts cannot be read.
#[derive(Debug)]
pub(super) enum PartError {
    /// A request fails.
    Request(kube::Error),
    /// Parts are missing, or were changed.
    Lost(String),
}

/// A client that stores parts.
pub(super) struct PartStore {
    client: Client,
    writer: Writer,
    /// The Actions whose plan could not be read when that was tried last.
    pub(super) failing: BTreeSet<NamespacedName>,
}

impl PartStore {
    pub(super) fn new(client: Client, writer: Writer) -> Self {
        Self { client, writer, failing: BTreeSet::new() }
    }

    /// Creates the parts of a plan that a status refers to. Those that exist with the same content
    /// count as created.
    pub(super) async fn keep_plan(
        &self,
        action: &ActionObject,
        status: &ActionStatus,
    ) -> Result<(), kube::Error> {
        let of_plan = status.parts.as_ref().filter(|it| it.content == PartContent::Plan);
        if of_plan.is_none() || action.status.parts == status.parts {
            return Ok(());
        }
        match (of_plan, large_plan(&without_progress(&status.plan))) {
            (Some(reference), Some(text)) => self.keep(action, reference, &text).await,
            _ => Ok(()),
        }
    }

    /// Creates the parts of a result, and returns the reference to them; `None` if the status has
    /// room for it.
    pub(super) async fn keep_result(
        &self,
        action: &ActionObject,
        result: &str,
    ) -> Result<Option<PartReference>, kube::Error> {
        if result.len() <= RESULT_LENGTH_MAX {
            return Ok(None);
        }
        let reference = named_reference(&action.name, PartContent::Result, result);
        self.keep(action, &reference, result).await?;
        Ok(Some(reference))
    }

    async fn keep(
        &self,
        action: &ActionObject,
        reference: &PartReference,
        text: &str,
    ) -> Result<(), kube::Error> {
        for (index, data) in (0..).zip(split(text)) {
            let part = part(action, &part_name(reference, index), index, data);
            self.keep_part(&action.namespace, &part).await?;
        }
        self.delete_others(action, Some(reference)).await
    }

    /// Creates a part. One of that name with another content is replaced: nothing refers to it.
    async fn keep_part(&self, namespace: &str, part: &Value) -> Result<(), kube::Error> {
        let resource = api_resource(ACTION_PART);
        if self.writer.create_new(namespace, &resource, part).await? {
            return Ok(());
        }
        let name = part["metadata"]["name"].as_str().unwrap_or_default();
        let there = self.api(namespace).get_opt(name).await?;
        if let Some(there) = &there {
            let is_owner = |uid: &str| part["metadata"]["ownerReferences"][0]["uid"] == uid;
            let is_same = there.data["spec"] == part["spec"]
                && there.owner_references().iter().any(|it| is_owner(&it.uid));
            if is_same {
                return Ok(());
            }
            let uid = there.metadata.uid.as_deref().unwrap_or_default();
            self.writer.delete_uid(namespace, &resource, name, uid).await?;
        }
        match self.writer.create_new(namespace, &resource, part).await? {
            true => Ok(()),
            // Another client creates parts as well; the next attempt shows whether they are the
            // same.
            false => Err(kube::Error::Service(format!("ActionPart {name} is taken").into())),
        }
    }

    /// Reads the text of parts.
    pub(super) async fn read(
        &self,
        namespace: &str,
        reference: &PartReference,
    ) -> Result<String, PartError> {
        let mut texts = Vec::new();
        for index in 0..reference.count {
            let name = part_name(reference, index);
            // Any client that may write the status can have written it.
            if !is_object_name(&name) {
                return Err(PartError::Lost(format!("no ActionPart has the name {name:?}")));
            }
            let part = self.api(namespace).get_opt(&name).await.map_err(PartError::Request)?;
            let data = part.as_ref().and_then(|it| it.data["spec"]["data"].as_str());
            let data =
                data.ok_or_else(|| PartError::Lost(format!("there is no ActionPart {name}")))?;
            texts.push(data.to_owned());
        }
        join(reference, texts.iter().map(String::as_str)).map_err(PartError::Lost)
    }

    /// Deletes the parts of an Action that a reference is not about.
    pub(super) async fn delete_others(
        &self,
        action: &ActionObject,
        kept: Option<&PartReference>,
    ) -> Result<(), kube::Error> {
        let parameters = ListParams::default().labels(&format!("{UID_LABEL}={}", action.uid));
        let listed = self.api(&action.namespace).list_metadata(&parameters).await?;
        let count = kept.map_or(0, |it| it.count);
        let kept = (0..count).filter_map(|index| Some(part_name(kept?, index)));
        let kept: Vec<String> = kept.collect();
        for part in listed.items.iter().filter(|it| !kept.contains(&it.name_any())) {
            let (name, uid) = (part.name_any(), part.metadata.uid.as_deref().unwrap_or_default());
            let resource = api_resource(ACTION_PART);
            self.writer.delete_uid(&action.namespace, &resource, &name, uid).await?;
        }
        Ok(())
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &api_resource(ACTION_PART))
    }
}

/// Returns an ActionPart, which goes with its Action.
fn part(action: &ActionObject, name: &str, index: u32, data: &str) -> Value {
    json!({
        "apiVersion": ACTION_PART.api_version(),
        "kind": ACTION_PART.kind,
        "metadata": {
            "name": name,
            "namespace": action.namespace,
            "labels": { UID_LABEL: action.uid },
            "ownerReferences": [{
                "apiVersion": ACTION.api_version(),
                "kind": ACTION.kind,
                "name": action.name,
                "uid": action.uid,
                "controller": true,
            }],
        },
        "spec": { "action": action.name, "index": index, "data": data },
    })
}

/// Returns the reference to the parts of a text, whose names have a part of its digest.
fn named_reference(action: &str, content: PartContent, text: &str) -> PartReference {
    let mut reference = reference("", content, text);
    let digits = reference.digest.trim_start_matches("sha256:");
    let action = beginning(action, NAME_LENGTH_MAX).trim_end_matches(['-', '.']);
    reference.name = format!("{action}-{}", beginning(digits, DIGITS));
    reference
}

/// Returns a status that refers to parts if its plan is too large, and does not if it is not. It
/// has the whole plan still.
pub(super) fn referring(action: &ActionObject, mut status: ActionStatus) -> ActionStatus {
    let is_of_result = status.parts.as_ref().is_some_and(|it| it.content == PartContent::Result);
    match large_plan(&without_progress(&status.plan)) {
        Some(text) => {
            status.parts = Some(named_reference(&action.name, PartContent::Plan, &text));
        }
        None if is_of_result => {}
        None => status.parts = None,
    }
    status
}

/// Returns a status as it is written: of a plan that is in parts, it has the changes that have
/// begun.
pub(super) fn stored(status: &ActionStatus) -> ActionStatus {
    let mut status = status.clone();
    if is_of_plan(&status) {
        let begun = status.plan.into_iter().filter(|it| it.state != ChangeState::Planned);
        let begun = begun.map(|it| PlannedChange {
            manifest: None,
            workloads: Vec::new(),
            relies_on: Vec::new(),
            message: beginning(&it.message, MESSAGE_LENGTH_MAX).to_owned(),
            ..it
        });
        status.plan = begun.collect();
    }
    status
}

/// Completes a status whose plan is in parts with the plan of an earlier one. Returns false if the
/// plan has to be read from its parts.
pub(super) fn restore(status: &mut ActionStatus, before: Option<&ActionStatus>) -> bool {
    if !is_of_plan(status) || status.state.is_final() || is_whole(status) {
        return true;
    }
    let Some(before) = before.filter(|it| it.parts == status.parts) else { return false };
    let plan = with_progress(without_progress(&before.plan), &status.plan);
    plan.map(|plan| status.plan = plan).is_ok()
}

/// Returns the whole plan of a status from the text of its parts.
///
/// # Errors
///
/// When it is not the plan of the status.
pub(super) fn loaded(status: &ActionStatus, text: &str) -> Result<Vec<PlannedChange>, String> {
    let plan = read_plan(text)?;
    // The digest of a plan is not that of its parts, which say what it relies on as well.
    if !status.plan_digest.is_empty() && status.plan_digest != plan_digest(&plan) {
        return Err(format!("the plan in its ActionParts is not {}", status.plan_digest));
    }
    with_progress(plan, &status.plan)
}

fn is_of_plan(status: &ActionStatus) -> bool {
    status.parts.as_ref().is_some_and(|it| it.content == PartContent::Plan)
}

/// Returns whether a status has all of the plan that it refers to.
fn is_whole(status: &ActionStatus) -> bool {
    let text = large_plan(&without_progress(&status.plan));
    text.is_some_and(|it| {
        let found = reference("", PartContent::Plan, &it).digest;
        status.parts.as_ref().is_some_and(|it| it.digest == found)
    })
}

/// Returns whether a write that failed fails again, whenever it is tried.
pub(super) fn is_lasting(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    matches!(status.code, 400 | 403 | 413 | 422)
        || TOO_LARGE.iter().any(|it| status.message.contains(it))
}

/// Returns whether the API server answered a request that failed: others may succeed.
pub(super) fn is_answer(error: &kube::Error) -> bool {
    !matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_))
}

/// Returns whether an object may have a name, which becomes part of a path: whether it is a DNS
/// subdomain.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsDNS1123Subdomain
fn is_object_name(name: &str) -> bool {
    let is_inside = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let is_label = |it: &str| {
        !it.is_empty() && it.chars().all(is_inside) && !it.starts_with('-') && !it.ends_with('-')
    };
    name.len() <= OBJECT_NAME_LENGTH_MAX && name.split('.').all(is_label)
}

/// Returns the beginning of a text that has at most so many bytes.
pub(super) fn beginning(text: &str, length_max: usize) -> &str {
    &text[..text.floor_char_boundary(length_max)]
}

#[cfg(test)]
mod tests {
    use plimsoll_api::Reason;
    use plimsoll_api::olm::action::{ActionState, ChangeOperation};
    use plimsoll_operators::actions::ActionFailure;
    use plimsoll_operators::actions::lifecycle::give_up;

    use super::*;

    fn change(name: &str, size: usize) -> PlannedChange {
        PlannedChange {
            operator: name.to_owned(),
            operation: ChangeOperation::Create,
            manifest: Some(json!({ "kind": "Operator", "text": "x".repeat(size) })),
            relies_on: vec!["platform".to_owned()],
            ..PlannedChange::default()
        }
    }

    fn status(size: usize) -> ActionStatus {
        let plan = ["a", "b", "c"].map(|it| change(it, size)).to_vec();
        let plan_digest = plan_digest(&plan);
        let state = ActionState::Running;
        ActionStatus { plan, plan_digest, state, ..ActionStatus::default() }
    }

    fn action() -> ActionObject {
        ActionObject { name: "one".to_owned(), ..ActionObject::default() }
    }

    #[test]
    fn a_small_plan_stays_in_the_status() {
        let status = referring(&action(), status(10));
        assert_eq!(status.parts, None);
        assert_eq!(stored(&status), status);
    }

    #[test]
    fn the_progress_of_a_large_plan_survives_without_its_content() {
        let mut status = referring(&action(), status(200 * 1024));
        let reference = status.parts.clone().expect("it is large");
        assert!(reference.name.starts_with("one-"), "{reference:?}");
        let text = large_plan(&status.plan).expect("it is large");
        for (at, state) in [ChangeState::Completed, ChangeState::Writing].into_iter().enumerate() {
            status.plan[at].state = state;
            status.plan[at].reason = "Because".to_owned();
            status = referring(&action(), status);
            assert_eq!(status.parts.as_ref(), Some(&reference), "progress changes no part");
            let mut read = stored(&status);
            assert_eq!(read.plan.len(), at + 1);
            assert!(json!(read).to_string().len() < 10 * 1024);
            assert!(!restore(&mut read.clone(), None), "it has to be read");
            assert_eq!(loaded(&read, &text).as_ref(), Ok(&status.plan));
            assert!(restore(&mut read, Some(&status)));
            assert_eq!(read, status);
        }
        assert!(restore(&mut status, None), "it is whole");
    }

    #[test]
    fn a_plan_that_was_given_up_is_in_the_parts_that_it_was_in() {
        let mut status = referring(&action(), status(200 * 1024));
        let before = status.clone();
        let text = large_plan(&status.plan).expect("it is large");
        status.plan[0].state = ChangeState::Completed;
        give_up(&mut status, &ActionFailure::new(Reason::PolicyDenied, "no policy grants it"));
        let read = stored(&referring(&action(), status.clone()));
        assert_eq!(read.parts, before.parts);
        let unwritten = read.plan.iter().map(|it| it.unwritten);
        assert_eq!(unwritten.collect::<Vec<_>>(), [false, true, true]);
        assert!(read.plan.iter().all(|it| it.relies_on.is_empty()), "the parts say it");
        assert_eq!(loaded(&read, &text).as_ref(), Ok(&status.plan));
        let mut restored = read.clone();
        assert!(restore(&mut restored, Some(&before)));
        assert_eq!(restored.plan, status.plan);
    }

    #[test]
    fn progress_of_another_plan_is_refused() {
        let status = referring(&action(), status(200 * 1024));
        let text = large_plan(&status.plan).expect("it is large");
        let mut read = stored(&status);
        read.plan = vec![PlannedChange { state: ChangeState::Written, ..change("d", 1) }];
        assert!(loaded(&read, &text).is_err());
        assert!(!restore(&mut read.clone(), Some(&status)));
        read.plan = Vec::new();
        read.plan_digest = "sha256:another".to_owned();
        assert!(loaded(&read, &text).is_err());
        read.plan_digest.clone_from(&status.plan_digest);
        assert_ne!(status.parts.map(|it| it.digest), Some(read.plan_digest.clone()));
        assert_eq!(loaded(&read, &text), Ok(status.plan));
    }

    #[test]
    fn a_status_keeps_the_parts_of_a_result_and_not_those_of_an_earlier_plan() {
        let check = |content: PartContent, is_kept: bool| {
            let parts = Some(named_reference("one", content, "text"));
            let before = ActionStatus { parts: parts.clone(), ..ActionStatus::default() };
            assert_eq!(
                referring(&action(), before).parts,
                parts.filter(|_| is_kept),
                "{content:?}"
            );
        };
        check(PartContent::Result, true);
        check(PartContent::Plan, false);
    }

    #[test]
    fn a_name_that_no_object_has_is_not_requested() {
        let check = |name: &str, expected: bool| {
            assert_eq!(is_object_name(name), expected, "{name}");
        };
        check("one-1f2e3d4c-0", true);
        check("one.two-0", true);
        check("", false);
        check("-0", false);
        check("one-", false);
        check("one..two-0", false);
        check("../../../secrets/one-0", false);
        check("one?watch=true&name=-0", false);
        check("One-0", false);
        check(&"x".repeat(253), true);
        check(&"x".repeat(254), false);
    }

    #[test]
    fn what_is_too_large_stays_so() {
        let check = |code: u16, message: &str, expected: bool| {
            let message = message.to_owned();
            let status = kube::core::Status { code, message, ..kube::core::Status::default() };
            assert_eq!(is_lasting(&kube::Error::Api(status.boxed())), expected, "{code}");
        };
        check(500, "etcdserver: request is too large", true);
        check(500, "trying to send message larger than max (3 vs. 2)", true);
        check(413, "", true);
        check(422, "status.plan: Invalid value", true);
        check(403, "ValidatingAdmissionPolicy denied the request", true);
        check(500, "etcdserver: leader changed", false);
        check(409, "the object has been modified", false);
    }

    #[test]
    fn an_error_that_the_server_sent_is_an_answer() {
        let of_server = kube::core::Status { code: 500, ..kube::core::Status::default() };
        assert!(is_answer(&kube::Error::Api(of_server.boxed())));
        assert!(!is_answer(&kube::Error::Service("it is unreachable".into())));
    }

    #[test]
    fn names_of_parts_are_short_enough() {
        let reference = named_reference(&"x".repeat(253), PartContent::Plan, "text");
        assert!(part_name(&reference, u32::MAX).len() < 253, "{reference:?}");
    }
}
