//! ActionParts: what is too large for the status of an Action.

use anyhow::anyhow;
use kube::Client;
use plimsoll_api::ACTION_PART;
use plimsoll_api::olm::action::{ActionPartSpec, ActionStatus, PartContent, PartReference};
use plimsoll_operators::actions::parts;
use plimsoll_operators::actions::report::ActionObject;
use serde::Deserialize as _;

use super::{actions, is_forbidden};

/// Adds what is in ActionParts to the status of an Action. Returns a note if it cannot be had: the
/// user may not read it, or it is not what the Action refers to.
///
/// # Errors
///
/// When the cluster cannot be read.
pub(super) async fn complete(
    client: &Client,
    action: &mut ActionObject,
) -> Result<Option<String>, anyhow::Error> {
    let Some(reference) = action.status.parts.clone() else { return Ok(None) };
    let what = match reference.content {
        PartContent::Plan => "plan",
        PartContent::Result => "result",
    };
    let fetched = fetch(client, &action.namespace, &reference).await?;
    let joined = fetched.and_then(|fetched| {
        let texts = fetched.iter().map(|it| it.data.as_str());
        parts::join(&reference, texts)
    });
    let added = joined.and_then(|text| add(&mut action.status, reference.content, text));
    Ok(added.err().map(|problem| format!("The {what} is not complete: {problem}")))
}

/// Reads the parts in their order; the inner error says which one cannot be had.
async fn fetch(
    client: &Client,
    namespace: &str,
    reference: &PartReference,
) -> Result<Result<Vec<ActionPartSpec>, String>, anyhow::Error> {
    let api = actions(client, namespace, ACTION_PART);
    let mut found = Vec::new();
    for index in 0..reference.count {
        let name = parts::part_name(reference, index);
        let part = match api.get_opt(&name).await {
            Ok(Some(part)) => part,
            Ok(None) => return Ok(Err(format!("there is no ActionPart `{name}`"))),
            Err(error) if is_forbidden(&error) => {
                return Ok(Err(format!("you may not read ActionPart `{name}`")));
            }
            Err(error) => {
                return Err(anyhow!(error).context(format!("failed to read ActionPart `{name}`")));
            }
        };
        match ActionPartSpec::deserialize(&part.data["spec"]) {
            Ok(part) => found.push(part),
            Err(error) => return Ok(Err(format!("ActionPart `{name}` cannot be read: {error}"))),
        }
    }
    Ok(Ok(found))
}

/// Adds the text of all parts to a status, whose plan has the changes that have begun.
fn add(status: &mut ActionStatus, content: PartContent, text: String) -> Result<(), String> {
    match content {
        PartContent::Result => status.result = text,
        PartContent::Plan => {
            status.plan = parts::with_progress(parts::read_plan(&text)?, &status.plan)?;
        }
    }
    Ok(())
}
