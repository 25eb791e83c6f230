//! The wait until an Operator is gone.

use std::io::Write;
use std::pin::pin;

use futures::StreamExt as _;
use kube::Api;
use kube::runtime::watcher::watch_object;
use plimsoll_api::Operator;

use super::super::state::status;
use super::super::wait::LimitReached;

/// The beginning of the message with which the controller refuses a deletion.
const REFUSED: &str = "It is not deleted: ";

/// Prints the progress of a deletion until the Operator is gone; `shown` is what was printed last. Returns the
/// reason if the controller refuses the deletion.
pub(super) async fn follow(
    operators: &Api<Operator>,
    name: &str,
    uid: &str,
    shown: &mut String,
    out: &mut dyn Write,
) -> Result<Option<String>, anyhow::Error> {
    let mut seen = pin!(watch_object(operators.clone(), name));
    while let Some(object) = seen.next().await {
        // The watch restarts by itself.
        let Ok(object) = object else { continue };
        let Some(operator) = object.filter(|it| it.metadata.uid.as_deref() == Some(uid)) else {
            return Ok(None);
        };
        if operator.metadata.deletion_timestamp.is_none() {
            continue;
        }
        let status = status(&operator);
        let progressing = status.conditions.iter().find(|it| it.type_ == "Progressing");
        let message = progressing.map(|it| it.message.clone()).unwrap_or_default();
        if let Some(refusal) = message.strip_prefix(REFUSED) {
            return Ok(Some(refusal.to_owned()));
        }
        if let Some(progress) = &status.deletion {
            let text = format!("{}: {message}", progress.phase);
            if text != *shown {
                writeln!(out, "{name}: {text}")?;
                *shown = text;
            }
        }
    }
    Ok(None)
}

/// Returns the error of a deletion that has not ended when a limit is reached. `shown` is what was printed of it last,
/// and `unrequested` are the Operators whose deletion would have been next.
pub(super) fn unfinished<'n>(
    limit: LimitReached,
    name: &str,
    shown: &str,
    unrequested: impl Iterator<Item = &'n str>,
) -> anyhow::Error {
    let shown = if shown.is_empty() { "its deletion is requested" } else { shown };
    let mut left = format!("  {name}: {shown}\n");
    for name in unrequested {
        left.push_str(&format!("  {name}: its deletion is not requested yet\n"));
    }
    let goes_on = format!(
        "The controller goes on with {name}: `operator describe {name}` shows how far it is, `operator abort \
         {name}` keeps what is left of it"
    );
    limit.error(&left, &goes_on)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_goes_on_and_what_does_not_is_named() {
        let limit = LimitReached::Timeout(Duration::from_secs(90));
        let error =
            unfinished(limit, "foo", "Operands: Waits for 1 Foo", ["bar", "baz"].into_iter());
        assert_eq!(
            error.to_string(),
            "not done within 1m 30s:\n  foo: Operands: Waits for 1 Foo\n  bar: its deletion is not requested \
             yet\n  baz: its deletion is not requested yet\nThe controller goes on with foo: `operator describe \
             foo` shows how far it is, `operator abort foo` keeps what is left of it"
        );
        let error = unfinished(LimitReached::Interruption, "foo", "", std::iter::empty());
        assert!(
            error.to_string().starts_with("not done yet:\n  foo: its deletion is requested\nThe")
        );
    }
}
