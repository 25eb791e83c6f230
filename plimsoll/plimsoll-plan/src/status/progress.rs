//! The `Progressing` condition: the line that people see first (CV-16.3).

use plimsoll_api::{Condition, ConditionStatus, Reason};

use super::assess::Outlook;
use super::{Builder, StatusInput, version};
use crate::plan::mode::Mode;

pub(super) fn progressing(
    build: &Builder,
    input: &StatusInput<'_>,
    outlook: &Outlook,
) -> Condition {
    let version = version(input.release);
    let (status, reason, message) = match input.mode {
        Mode::Reconciling => {
            let (reason, message) = reconciling(version, input, outlook);
            (ConditionStatus::False, reason, message)
        }
        Mode::Initializing | Mode::Updating => {
            let (reason, message) = moving(version, input, outlook);
            (ConditionStatus::True, reason, message)
        }
    };
    let reason = reason.map(Reason::as_str).unwrap_or_default();
    build.plain("Progressing", status, reason, &message)
}

fn reconciling(
    version: &str,
    input: &StatusInput<'_>,
    outlook: &Outlook,
) -> (Option<Reason>, String) {
    if let Outlook::Failing { reason, summary, .. } = outlook {
        (Some(*reason), format!("Error while reconciling {version}: {summary}"))
    } else if input.invalid.is_empty() {
        (None, format!("Cluster version is {version}"))
    } else {
        let message = format!("Stopped at {version}: the cluster version is invalid");
        (Some(Reason::InvalidClusterVersion), message)
    }
}

fn moving(version: &str, input: &StatusInput<'_>, outlook: &Outlook) -> (Option<Reason>, String) {
    match outlook {
        Outlook::Failing { reason, summary, .. } => {
            (Some(*reason), format!("Unable to apply {version}: {summary}"))
        }
        _ if !input.invalid.is_empty() => {
            let message = format!("Reconciling {version}: the cluster version is invalid");
            (Some(Reason::InvalidClusterVersion), message)
        }
        Outlook::Waiting { reason, text } | Outlook::Slow { reason, text, .. } => {
            let joint = if changed(input).0 == 0 { ":" } else { "," };
            (Some(*reason), format!("{}{joint} {text}", towards(version, input)))
        }
        Outlook::Well => match input.updates.paused_before {
            None => (None, towards(version, input)),
            Some(level) => {
                let joint = if changed(input).0 == 0 { ":" } else { "," };
                let towards = towards(version, input);
                let message = format!("{towards}{joint} paused before run level {level}");
                (Some(Reason::UpdatePaused), message)
            }
        },
    }
}

/// What an update has done, of what it has to do: what the release before has already is neither.
fn changed(input: &StatusInput<'_>) -> (usize, usize) {
    let unchanged = input.unchanged.min(input.done);
    (input.done - unchanged, input.total.saturating_sub(unchanged))
}

fn towards(version: &str, input: &StatusInput<'_>) -> String {
    let (done, total) = changed(input);
    if done == 0 {
        return format!("Working towards {version}");
    }
    let percent = done * 100 / total.max(done);
    format!("Working towards {version}: {done} of {total} done ({percent}% complete)")
}
