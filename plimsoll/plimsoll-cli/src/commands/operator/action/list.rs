//! `plimsoll operator action list`.

use std::io::Write;
use std::process::ExitCode;

use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams, ObjectList};
use kube::{Api, Client};
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionRequester, ActionState};
use plimsoll_api::{ACTION, ApiKind, RETRY_ACTION};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_simulation::cluster_state::api;
use serde_json::Value;

use super::retries::RetryObject;
use super::{ListArguments, actions, argument, failed};
use crate::commands::operator::output::list_of;
use crate::commands::operator::unreadable::left_out;
use crate::exit;
use crate::process::now;
use crate::render::age::age;
use crate::render::format::Format;
use crate::render::{object, table};

/// The number of objects per page of a list.
const PAGE: u32 = 500;

/// An Action or a RetryAction in a list.
struct ListedRequest {
    kind: ApiKind,
    namespace: String,
    name: String,
    class: String,
    package: String,
    state: ActionState,
    reason: String,
    requester: String,
    created: Timestamp,
    message: String,
    object: Value,
}

impl ListedRequest {
    /// Reads an object; `None` if it cannot be read, which standard error says.
    fn read(kind: ApiKind, object: &Value) -> Option<Self> {
        let read = match kind == ACTION {
            true => ActionObject::read(object).map(|it| Self::of_action(it, object.clone())),
            false => RetryObject::read(object).map(|it| Self::of_retry(it, object.clone())),
        };
        let problem = match read {
            Ok(listed) => return Some(listed),
            Err(problem) => problem,
        };
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let name = format!("{}/{}", text("namespace"), text("name"));
        anstream::eprintln!("{}", left_out(kind.kind, &name, &problem));
        None
    }

    fn of_action(action: ActionObject, object: Value) -> Self {
        let conditions = &action.status.conditions;
        let succeeded = conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
        Self {
            kind: ACTION,
            state: action.status.state,
            reason: succeeded.map(|it| it.reason.clone()).unwrap_or_default(),
            requester: username(action.spec.requester.as_ref()),
            message: succeeded.map(|it| on_one_line(&it.message)).unwrap_or_default(),
            namespace: action.namespace,
            name: action.name,
            class: action.spec.action_class,
            package: action.spec.package,
            created: action.created,
            object,
        }
    }

    fn of_retry(retry: RetryObject, object: Value) -> Self {
        let succeeded = retry.succeeded();
        Self {
            kind: RETRY_ACTION,
            state: retry.state(),
            reason: succeeded.map(|it| it.reason.clone()).unwrap_or_default(),
            requester: username(retry.spec.requester.as_ref()),
            message: succeeded.map(|it| on_one_line(&it.message)).unwrap_or_default(),
            namespace: retry.namespace,
            name: retry.name,
            class: retry.spec.template.action_class,
            package: retry.spec.template.package,
            created: retry.created,
            object,
        }
    }
}

fn username(requester: Option<&ActionRequester>) -> String {
    requester.map(|it| it.username.clone()).unwrap_or_default()
}

/// Runs `plimsoll operator action list`.
pub(super) async fn list(
    client: &Client,
    arguments: &ListArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let listed = requests(client, arguments).await?;
    match &arguments.output {
        Format::Name => {
            for it in &listed {
                writeln!(out, "{}", object::reference(it.kind, &it.name))?;
            }
        }
        format if format.is_for_people() => write_table(client, arguments, &listed, out)?,
        format => {
            let objects: Vec<Value> = listed.into_iter().map(|it| it.object).collect();
            format.write(&list_of(&objects), out)?;
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Returns the Actions and RetryActions that are selected, the oldest first.
async fn requests(
    client: &Client,
    arguments: &ListArguments,
) -> Result<Vec<ListedRequest>, anyhow::Error> {
    let namespace = arguments.namespace.of(client);
    let mut found = Vec::new();
    for kind in [ACTION, RETRY_ACTION] {
        let api = match arguments.all_namespaces {
            true => api(client, kind),
            false => actions(client, &namespace, kind),
        };
        let objects = match objects(&api, arguments.selector.as_deref()).await {
            Ok(objects) => objects,
            // Whoever may list Actions may perhaps not list what makes them.
            Err(kube::Error::Api(status))
                if kind == RETRY_ACTION && matches!(status.code, 403 | 404) =>
            {
                continue;
            }
            Err(error) => return Err(failed(error, || format!("failed to list {}s", kind.kind))),
        };
        for mut object in objects {
            // kubectl prints none either.
            object.metadata.managed_fields = None;
            found.extend(ListedRequest::read(kind, &serde_json::to_value(object)?));
        }
    }
    let states: Vec<ActionState> = arguments.states.iter().map(|it| (*it).into()).collect();
    found.retain(|it| states.is_empty() || states.contains(&it.state));
    found.sort_by(|a, b| {
        (a.created, &a.namespace, &a.name).cmp(&(b.created, &b.namespace, &b.name))
    });
    Ok(found)
}

/// Reads all objects of a kind that have some labels, page by page.
async fn objects(
    api: &Api<DynamicObject>,
    selector: Option<&str>,
) -> Result<Vec<DynamicObject>, kube::Error> {
    let mut objects = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    parameters.label_selector = selector.map(str::to_owned);
    loop {
        let page: ObjectList<DynamicObject> = api.list(&parameters).await?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(objects),
        }
    }
}

fn write_table(
    client: &Client,
    arguments: &ListArguments,
    listed: &[ListedRequest],
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    if listed.is_empty() {
        match arguments.all_namespaces {
            true => writeln!(out, "No resources found")?,
            false => {
                writeln!(
                    out,
                    "No resources found in {} namespace.",
                    arguments.namespace.of(client)
                )?;
            }
        }
        return Ok(());
    }
    let is_wide = arguments.output.is_wide();
    let mut headings = vec!["NAME", "CLASS", "PACKAGE", "STATE", "REASON", "REQUESTER", "AGE"];
    if arguments.all_namespaces {
        headings.insert(0, "NAMESPACE");
    }
    if is_wide {
        headings.push("MESSAGE");
    }
    let row = |it: &ListedRequest| {
        let mut row = vec![
            argument(it.kind, &it.name),
            it.class.clone(),
            it.package.clone(),
            it.state.outcome().to_owned(),
            it.reason.clone(),
            it.requester.clone(),
            age(it.created, now()),
        ];
        if arguments.all_namespaces {
            row.insert(0, it.namespace.clone());
        }
        if is_wide {
            row.push(it.message.clone());
        }
        row
    };
    let rows: Vec<Vec<String>> = listed.iter().map(row).collect();
    Ok(table::print(out, &headings, &rows)?)
}
