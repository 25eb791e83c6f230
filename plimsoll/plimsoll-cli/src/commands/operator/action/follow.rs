//! Following an Action or a RetryAction until it ends.

use std::collections::BTreeMap;
use std::future;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use futures::stream::{self, LocalBoxStream};
use futures::{Stream, StreamExt as _};
use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Error, watch_object};
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionState, ChangeState, PartContent};
use plimsoll_api::{ACTION, ApiKind, Reason};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_resolve::printable::on_one_line;

use super::super::wait::{LimitReached, WaitLimits};
use super::retries::RetryObject;
use super::show::{indented, progress_text, write_end, write_whole_plan};
use super::{actions, argument, is_forbidden, parts, state_in_words};
use crate::exit::{self, Refusal};

/// An object that is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct FollowedRequest<'f> {
    pub(super) kind: ApiKind,
    pub(super) namespace: &'f str,
    pub(super) name: &'f str,
    /// Whether each change is printed, not the end alone.
    pub(super) is_watched: bool,
}

/// What an object reports.
struct SeenRequest {
    state: ActionState,
    message: String,
    /// How far the plan or the attempts are: the text by what it is about.
    progress: Vec<(String, String)>,
    /// The name of the latest attempt of a RetryAction; empty before the first, and for an Action.
    attempt: String,
    /// The Action; `None` for a RetryAction.
    action: Option<Box<ActionObject>>,
}

impl SeenRequest {
    /// Reads an object; `None` if no controller has reported on it.
    fn read(kind: ApiKind, object: DynamicObject) -> Option<Self> {
        let object = serde_json::to_value(object).ok()?;
        let message = |conditions: &[MetaCondition]| {
            let succeeded = conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
            succeeded.map(|it| it.message.clone())
        };
        if kind != ACTION {
            let retry = RetryObject::read(&object).ok()?;
            return Some(Self {
                state: retry.state(),
                message: message(&retry.status.conditions)?,
                progress: attempts(&retry),
                attempt: retry.status.latest_attempt,
                action: None,
            });
        }
        let action = Box::new(ActionObject::read(&object).ok()?);
        let (status, state) = (&action.status, action.status.state);
        let message = message(&status.conditions);
        // A controller of another class may end an Action without a condition.
        let message = message.or_else(|| state.is_final().then(String::new))?;
        let (progress, attempt) = (changes(&action), String::new());
        Some(Self { state, message, progress, attempt, action: Some(action) })
    }

    /// Returns the state with its message.
    fn line(&self) -> String {
        let state = state_in_words(self.state);
        match self.message.as_str() {
            "" => state.to_owned(),
            message => indented(&format!("{state}: {message}")),
        }
    }
}

/// Returns the plan of an Action and its changes that were begun.
fn changes(action: &ActionObject) -> Vec<(String, String)> {
    let status = &action.status;
    let mut lines = Vec::new();
    if !status.plan_digest.is_empty() {
        let summary = [status.plan_digest.as_str(), status.plan_summary.as_str()];
        let summary: Vec<&str> = summary.into_iter().filter(|it| !it.is_empty()).collect();
        lines.push(("plan".to_owned(), on_one_line(&summary.join(": "))));
    }
    for change in status.plan.iter().filter(|it| it.state != ChangeState::Planned) {
        lines.push((on_one_line(change.subject()), progress_text(change)));
    }
    lines
}

/// Returns the attempts of a RetryAction.
fn attempts(retry: &RetryObject) -> Vec<(String, String)> {
    let status = &retry.status;
    let mut lines = Vec::new();
    if status.failed > 0 {
        lines.push(("attempts".to_owned(), retry.failures()));
    }
    if !status.latest_attempt.is_empty() {
        lines.push(("attempt".to_owned(), status.latest_attempt.clone()));
    }
    lines
}

/// Prints the progress of an object until it ends, for ever if the timeout is zero.
///
/// # Errors
///
/// When it is deleted meanwhile, the time is over, or the user interrupts.
pub(super) async fn wait(
    client: &Client,
    followed: &FollowedRequest<'_>,
    timeout: Duration,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut progress = Progress::default();
    let ended = follow(client, followed, &mut progress, out);
    match WaitLimits::new(timeout).during(ended).await {
        Ok(ended) => ended,
        Err(limit) => Err(progress.not_ended(followed, limit)),
    }
}

/// Returns the versions of an object, and an error once it was deleted or may not be watched. A
/// watch that fails otherwise is begun again.
pub(super) fn versions(
    client: &Client,
    kind: ApiKind,
    namespace: &str,
    name: &str,
) -> impl Stream<Item = Result<DynamicObject, anyhow::Error>> + use<> {
    let changes = watch_object(actions(client, namespace, kind), name).default_backoff();
    let what = format!("{} `{name}`", kind.kind);
    changes.filter_map(move |change| {
        let version = match change {
            Ok(object) => Some(object.ok_or_else(|| anyhow!("{what} was deleted"))),
            Err(Error::InitialListFailed(error) | Error::WatchStartFailed(error))
                if is_forbidden(&error) =>
            {
                Some(Err(anyhow!(error).context(format!("failed to watch {what}"))))
            }
            Err(_) => None,
        };
        future::ready(version)
    })
}

/// Returns the exit code of a wait for an object that has ended in a state.
pub(super) fn exit_code(state: ActionState) -> ExitCode {
    match state {
        ActionState::Succeeded => exit::SUCCESS.into(),
        _ => exit::FAILURE.into(),
    }
}

/// Prints the progress of an object until it ends. The latest attempt of a RetryAction is watched,
/// too: that it waits for an approval is in its own status alone.
async fn follow(
    client: &Client,
    followed: &FollowedRequest<'_>,
    progress: &mut Progress,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let FollowedRequest { kind, namespace, name, .. } = *followed;
    let mut own = pin!(versions(client, kind, namespace, name));
    let mut of_attempt: LocalBoxStream<'_, Result<DynamicObject, anyhow::Error>> =
        stream::pending().boxed_local();
    let mut attempt = String::new();
    let mut seen: Option<SeenRequest> = None;
    let mut waiting: Option<SeenRequest> = None;
    loop {
        tokio::select! {
            biased;
            version = own.next() => {
                let ended = || format!("the watch of {} `{name}` ended", kind.kind);
                let version = version.with_context(ended)??;
                let Some(new) = SeenRequest::read(kind, version) else { continue };
                if new.attempt != attempt {
                    attempt.clone_from(&new.attempt);
                    of_attempt = versions(client, ACTION, namespace, &attempt).boxed_local();
                    waiting = None;
                }
                seen = Some(new);
            }
            Some(version) = of_attempt.next() => {
                // Whoever may not read it sees the RetryAction alone.
                let read = version.ok().and_then(|it| SeenRequest::read(ACTION, it));
                waiting = read.filter(|it| it.state == ActionState::WaitingForApproval);
            }
        }
        let mut ended = seen.take_if(|it| it.state.is_final());
        let note = match ended.as_mut().and_then(|it| it.action.as_deref_mut()) {
            Some(action) => complete(client, action).await,
            None => Ok(None),
        };
        let Some(shown) = ended.as_ref().or(waiting.as_ref()).or(seen.as_ref()) else { continue };
        progress.show(followed, shown, out)?;
        let Some(ended) = ended else { continue };
        if let Some(action) = &ended.action {
            write_end(action, note?.as_deref(), out)?;
        }
        return Ok(exit_code(ended.state));
    }
}

/// Adds what is printed of an Action that has ended and is in ActionParts. Returns a note if it
/// cannot be had.
async fn complete(
    client: &Client,
    action: &mut ActionObject,
) -> Result<Option<String>, anyhow::Error> {
    match action.status.parts.as_ref().map(|it| it.content) {
        Some(PartContent::Result) => parts::complete(client, action).await,
        Some(PartContent::Plan) if is_dry_run(action) => parts::complete(client, action).await,
        Some(PartContent::Plan) | None => Ok(None),
    }
}

/// Returns whether only the plan of an Action is made: it is printed.
fn is_dry_run(action: &ActionObject) -> bool {
    let reason = action.condition().map(|it| it.reason.as_str());
    action.spec.dry_run == Some(true) || reason == Some(Reason::DryRun.as_str())
}

/// What was printed of an object.
#[derive(Default)]
struct Progress {
    /// The text that was printed last, by what it is about.
    shown: BTreeMap<String, String>,
    /// The state that was seen last, with its message; `None` before the first.
    latest: Option<(ActionState, String)>,
}

impl Progress {
    /// Prints what has changed.
    fn show(
        &mut self,
        followed: &FollowedRequest<'_>,
        seen: &SeenRequest,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        let FollowedRequest { namespace, name, is_watched, .. } = *followed;
        if is_watched {
            for (subject, line) in &seen.progress {
                if self.shown.insert(subject.clone(), line.clone()).as_ref() != Some(line) {
                    writeln!(out, "{subject}: {line}")?;
                }
            }
        }
        let latest = Some((seen.state, seen.line()));
        if self.latest == latest {
            return Ok(out.flush()?);
        }
        // A person has to act on it.
        let action = seen.action.as_ref();
        let held_up = action.filter(|_| seen.state == ActionState::WaitingForApproval);
        if let Some(action) = action.filter(|it| seen.state.is_final() && is_dry_run(it)) {
            write_whole_plan(&action.status, out)?;
        }
        if is_watched || held_up.is_some() || seen.state.is_final() {
            writeln!(out, "{name} {}", seen.line())?;
        }
        if let Some(action) = held_up {
            let name = &action.name;
            writeln!(out, "approve it with `operator action approve {name} -n {namespace}`")?;
        }
        self.latest = latest;
        Ok(out.flush()?)
    }

    /// Returns the error if a limit is reached before the end.
    fn not_ended(&self, followed: &FollowedRequest<'_>, limit: LimitReached) -> anyhow::Error {
        let FollowedRequest { kind, namespace, name, .. } = *followed;
        let unseen = "the controller has not reported on it yet";
        let state = self.latest.as_ref().map_or(unseen, |(_, line)| line.as_str());
        let argument = argument(kind, name);
        let goes_on = format!(
            "It goes on: `operator action show {argument} -n {namespace}` shows how far it is, \
             `operator action cancel {argument} -n {namespace}` cancels it"
        );
        let error = limit.error(&format!("  {} {name}: {state}\n", kind.kind), &goes_on);
        let is_held_up = matches!(self.latest, Some((ActionState::WaitingForApproval, _)));
        match limit {
            LimitReached::Timeout(_) if is_held_up => {
                Refusal { message: error.to_string(), exit: exit::DECLINED }.into()
            }
            LimitReached::Timeout(_) | LimitReached::Interruption => error,
        }
    }
}
