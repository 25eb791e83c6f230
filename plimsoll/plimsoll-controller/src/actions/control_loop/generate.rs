//! The generation of Actions by RetryActions, CronActions and EventActions.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, ReplaceOperation};
use kube::Api;
use kube::core::DynamicObject;
use plimsoll_api::{ACTION, ApiKind, RETRY_ACTION};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::actions::triggers::Observations;
use serde_json::{Value, json};

use super::contents::borrowed;
use super::observations::{Observation, is_newer};
use super::queue::WorkItem;
use super::{ControlLoop, Owner, RETRY_INTERVAL};
use crate::actions::generators::{ActionGenerator, GeneratorDecision};
use crate::actions::parts::{beginning, is_lasting};
use crate::actions::selection::{self, Selection, SelectionWatch};
use crate::listing_watch::WatchedObject as _;
use crate::resources::api_resource;
use crate::write::{Writer, chain};
use plimsoll_api::NamespacedName;

/// The maximum length of the message of a refusal in a status, in bytes.
const REFUSAL_LENGTH_MAX: usize = 2048;

/// What became of the creation of an Action.
#[derive(Debug, PartialEq, Eq)]
enum Creation {
    /// It exists.
    Made,
    /// One of another client has its name.
    Taken,
    /// The API server refuses it, with this message.
    Refused(String),
}

/// What was done about a decision.
#[derive(Default)]
struct Done {
    /// The object after its status was written; `None` if the status was not.
    written: Option<DynamicObject>,
    /// Whether the Action was refused and stays due.
    is_refused: bool,
}

impl ControlLoop {
    /// Creates, cancels and deletes the Actions of an object that generates Actions.
    pub(super) async fn generate(&mut self, kind: &'static str, id: &NamespacedName) {
        let key = (kind, id.clone());
        let Some(generator) = self.generators.get(&key) else { return };
        if let Some(kept) = generator.kept_finalizers() {
            return self.remove_finalizer(kind, id, &kept).await;
        }
        let owner = Owner::of(id, &generator.uid);
        let generated = self.generated.get(&owner).into_iter().flatten();
        let known = |id| self.actions.get(id).cloned().or_else(|| self.ended.attempt(id));
        let generated: Vec<ActionObject> = generated.filter_map(known).collect();
        let generated: Vec<&ActionObject> = generated.iter().collect();
        let contents = match self.contents(generator).await {
            Ok(contents) => contents,
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot ask what a requester may see");
                return self.queue.retry(WorkItem::Generator(kind, id.clone()), RETRY_INTERVAL);
            }
        };
        let is_denied = matches!(contents, Some(Err(_)));
        // Nothing tells when the available updates are known.
        let is_unknown = contents.is_none() && generator.looks_for_updates();
        let objects = match self.read_needed(generator, contents.as_ref()).await {
            Ok(objects) => objects,
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot read what a filter is about");
                return self.queue.retry(WorkItem::Generator(kind, id.clone()), RETRY_INTERVAL);
            }
        };
        let observations =
            contents.as_ref().map(|it| Observations { contents: borrowed(it), objects: &objects });
        let decision = match self.decide_on(generator, &generated, observations.as_ref()).await {
            Ok(decision) => decision,
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot look for an attempt");
                return self.queue.retry(WorkItem::Generator(kind, id.clone()), RETRY_INTERVAL);
            }
        };
        let uids: BTreeMap<&str, &str> =
            generated.iter().map(|it| (it.name.as_str(), it.uid.as_str())).collect();
        let done = self.carry_out(generator, &decision, &uids).await;
        let wake_at = decision.wake_at;
        match done {
            Ok(done) => {
                if let Some(written) = &done.written {
                    self.announce_missed(generator, &written.data["status"]);
                }
                self.decision_done(generator.kind, id, done)
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), kind, name = id.name, "trying again");
                self.queue.retry(WorkItem::Generator(kind, id.clone()), RETRY_INTERVAL);
            }
        }
        if let Some(at) = wake_at {
            self.queue.add_at(WorkItem::Generator(kind, id.clone()), at);
        }
        if is_unknown {
            self.queue.retry(WorkItem::Generator(kind, id.clone()), RETRY_INTERVAL);
        }
        if is_denied {
            self.queue.retry(WorkItem::Generator(kind, id.clone()), selection::RETRY_INTERVAL);
        }
    }

    /// Removes our finalizer from an object that is being deleted, whoever has set it there.
    async fn remove_finalizer(&mut self, kind: &'static str, id: &NamespacedName, kept: &[String]) {
        let Some(generator) = self.generators.get(&(kind, id.clone())) else { return };
        let path = PointerBuf::from_tokens(["metadata", "finalizers"]);
        let kept = PatchOperation::Replace(ReplaceOperation { path, value: json!(kept) });
        let operations = vec![Writer::guard(&generator.revision), kept];
        let resource = api_resource(generator.kind);
        let NamespacedName { namespace, name } = id;
        match self.writer.patch_guarded(namespace, &resource, name, operations).await {
            Ok(()) => {}
            // It is gone.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                tracing::debug!(error = chain(&error), kind, name, "a finalizer stays");
                let item = WorkItem::Generator(kind, id.clone());
                self.queue.retry(item, selection::RETRY_INTERVAL);
            }
        }
    }

    /// Handles what was done about a decision: the next one has to be based on the status that was
    /// just written.
    fn decision_done(&mut self, kind: ApiKind, id: &NamespacedName, done: Done) {
        let item = WorkItem::Generator(kind.kind, id.clone());
        if let Some(written) = done.written
            && self.generator_changed(kind, id.clone(), Some(&written.into_value()))
            && !done.is_refused
        {
            self.queue.add([item.clone()]);
        }
        if done.is_refused {
            self.queue.retry(item, selection::RETRY_INTERVAL);
        }
    }

    /// Decides about an object that generates Actions, after a look for the Action that it made
    /// and that is not observed.
    async fn decide_on(
        &self,
        generator: &ActionGenerator,
        generated: &[&ActionObject],
        observations: Option<&Observations<'_>>,
    ) -> Result<GeneratorDecision, kube::Error> {
        let now = self.clock.now();
        let windows = &self.windows;
        let decision = generator.decide(generated, observations, windows, false, now);
        let Some(name) = &decision.look_for else { return Ok(decision) };
        let actions: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &generator.namespace, &api_resource(ACTION));
        match actions.get_opt(name).await? {
            // Its watch is about to deliver it.
            Some(there) if generator.has_made(&there) => Ok(decision),
            _ => Ok(generator.decide(generated, observations, windows, true, now)),
        }
    }

    /// Carries out a decision about an object that generates Actions.
    async fn carry_out(
        &self,
        generator: &ActionGenerator,
        decision: &GeneratorDecision,
        uids: &BTreeMap<&str, &str>,
    ) -> Result<Done, kube::Error> {
        let namespace = &generator.namespace;
        if let Some(name) = &decision.create {
            match self.make(generator, name).await? {
                Creation::Made => {}
                Creation::Taken => {
                    // It is recorded before another name is used: then none is created under this
                    // one.
                    let status = generator.after_collision();
                    return self.write_generator_status(generator, Some(&status)).await;
                }
                Creation::Refused(message) => {
                    // A quota may leave room for it then. What fails is tried again with it.
                    if let Err(error) = self.delete_made(generator, decision, uids).await {
                        tracing::debug!(error = chain(&error), "cannot delete an Action");
                    }
                    return self.record_refusal(generator, decision, &message).await;
                }
            }
        }
        for name in &decision.cancel {
            self.writer.cancel_action(namespace, name).await?;
        }
        self.delete_made(generator, decision, uids).await?;
        if decision.is_outlived {
            let ActionGenerator { kind, name, uid, .. } = generator;
            self.writer.delete_uid(namespace, &api_resource(*kind), name, uid).await?;
            return Ok(Done::default());
        }
        self.write_generator_status(generator, decision.status.as_ref()).await
    }

    /// Deletes the Actions that are not kept any longer.
    async fn delete_made(
        &self,
        generator: &ActionGenerator,
        decision: &GeneratorDecision,
        uids: &BTreeMap<&str, &str>,
    ) -> Result<(), kube::Error> {
        let resource = api_resource(ACTION);
        for name in &decision.delete {
            let uid = uids.get(name.as_str()).copied().unwrap_or_default();
            self.writer.delete_uid(&generator.namespace, &resource, name, uid).await?;
        }
        Ok(())
    }

    /// Records that an Action was refused.
    async fn record_refusal(
        &self,
        generator: &ActionGenerator,
        decision: &GeneratorDecision,
        message: &str,
    ) -> Result<Done, kube::Error> {
        let ActionGenerator { kind, namespace, name, .. } = generator;
        tracing::debug!(kind = kind.kind, namespace, name, error = message, "refused");
        let message = beginning(message, REFUSAL_LENGTH_MAX);
        let status = generator.after_refusal(decision, message, self.clock.now());
        let done = self.write_generator_status(generator, status.as_ref()).await?;
        // The status of a RetryAction says when the next attempt begins.
        Ok(Done { is_refused: *kind != RETRY_ACTION, ..done })
    }

    /// Creates an Action unless it was created before.
    ///
    /// # Errors
    ///
    /// When the API server does not answer, or may answer otherwise later.
    async fn make(&self, generator: &ActionGenerator, name: &str) -> Result<Creation, kube::Error> {
        let (namespace, resource) = (&generator.namespace, api_resource(ACTION));
        let action = generator.action(name);
        let created = creation(self.writer.create_new(namespace, &resource, &action).await)?;
        if created == Creation::Made {
            return Ok(created);
        }
        let name = action["metadata"]["name"].as_str().unwrap_or_default();
        let actions: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        // One that exists may be refused as well, by an admission policy or a quota.
        match actions.get_opt(name).await? {
            Some(there) if generator.has_made(&there) => Ok(Creation::Made),
            Some(_) => {
                tracing::warn!(namespace, name, "another client has taken the name of an Action");
                Ok(Creation::Taken)
            }
            // It was deleted meanwhile.
            None if created == Creation::Taken => {
                creation(self.writer.create_new(namespace, &resource, &action).await)
            }
            None => Ok(created),
        }
    }

    /// Writes the status of an object that generates Actions, unless it is `None`.
    async fn write_generator_status(
        &self,
        generator: &ActionGenerator,
        status: Option<&Value>,
    ) -> Result<Done, kube::Error> {
        let Some(status) = status else { return Ok(Done::default()) };
        let ActionGenerator { namespace, name, revision, .. } = generator;
        let resource = api_resource(generator.kind);
        let written =
            self.writer.write_status_in(namespace, &resource, name, status, revision).await?;
        Ok(Done { written: Some(written), is_refused: false })
    }

    /// Records the current state of an object that generates Actions, which is due if it has
    /// changed; `object` is `None` if it was deleted.
    pub(super) fn generator_observed(
        &mut self,
        kind: ApiKind,
        id: NamespacedName,
        object: Option<&Value>,
    ) {
        let item = WorkItem::Generator(kind.kind, id.clone());
        if object.is_none() {
            self.queue.forget(&item);
        }
        if self.generator_changed(kind, id, object) {
            self.queue.add([item]);
        }
    }

    /// Records the current state of an object that generates Actions; returns whether that is newer
    /// than the one before.
    fn generator_changed(
        &mut self,
        kind: ApiKind,
        id: NamespacedName,
        object: Option<&Value>,
    ) -> bool {
        let key = (kind.kind, id);
        let before = self.generators.get(&key);
        let selected = before.and_then(|it| it.selection.clone());
        match object.map(|it| ActionGenerator::read(kind, it)).transpose() {
            Ok(Some(generator)) => {
                let is_known = |before: &ActionGenerator| {
                    before.uid == generator.uid && !is_newer(&generator.revision, &before.revision)
                };
                if before.is_some_and(is_known) {
                    return false;
                }
                let selects = generator.selection.clone();
                self.generators.insert(key, generator);
                self.select(selected, selects);
                return true;
            }
            Ok(None) => {
                self.generators.remove(&key);
                self.select(selected, None);
            }
            Err(error) => {
                tracing::warn!(kind = key.0, name = key.1.name, error, "an object cannot be read");
            }
        }
        false
    }

    /// Starts a watch for a new selection, and ends the watch of one that no object has any more.
    fn select(&mut self, before: Option<Selection>, after: Option<Selection>) {
        if before == after {
            return;
        }
        if let Some(before) = before
            && !self.generators.values().any(|it| it.selection.as_ref() == Some(&before))
        {
            self.selections.remove(&before);
        }
        if let Some(after) = after
            && !self.selections.contains_key(&after)
        {
            let selection = Box::new(after.clone());
            let observed = move |change| Observation::Selected(selection.clone(), change);
            let (client, relay) = (self.client.clone(), self.relay.clone());
            let watch = SelectionWatch::begin(client, after.clone(), observed, relay);
            self.selections.insert(after, watch);
        }
    }
}

/// Returns what became of a creation.
///
/// # Errors
///
/// When the API server does not answer, or may answer otherwise later.
fn creation(created: Result<bool, kube::Error>) -> Result<Creation, kube::Error> {
    match created {
        Ok(true) => Ok(Creation::Made),
        Ok(false) => Ok(Creation::Taken),
        Err(error) if is_lasting(&error) => Ok(Creation::Refused(chain(&error))),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_creation_that_would_fail_again_is_refused() {
        let answered = |code: u16| {
            let status = Status { code, message: "no quota".to_owned(), ..Status::default() };
            creation(Err(kube::Error::Api(Box::new(status))))
        };
        for (code, is_refused) in
            [(400, true), (403, true), (413, true), (422, true), (429, false), (500, false)]
        {
            let expected = is_refused.then(|| Creation::Refused("no quota".to_owned()));
            assert_eq!(answered(code).ok(), expected, "{code}");
        }
        assert_eq!(creation(Ok(true)).ok(), Some(Creation::Made));
        assert_eq!(creation(Ok(false)).ok(), Some(Creation::Taken));
    }
}
