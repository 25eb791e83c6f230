//! The kinds of objects in files: which are Operators, and which are meant to be.

use std::borrow::Cow;

use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, CATALOG, CRON_ACTION, EVENT_ACTION,
    MAINTENANCE_WINDOW, OPERATOR, OPERATOR_REVISION, RETRY_ACTION,
};
use plimsoll_content::capability::{meant, most_similar};
use plimsoll_content::spelling::is_misspelt;
use serde_json::Value;

use super::fields::FieldDefect;

/// The kinds of the add-on layer.
const KINDS: [ApiKind; 10] = [
    OPERATOR,
    CATALOG,
    OPERATOR_REVISION,
    ACTION,
    RETRY_ACTION,
    CRON_ACTION,
    EVENT_ACTION,
    ACTION_CLASS,
    ACTION_POLICY,
    MAINTENANCE_WINDOW,
];
/// The kind of a list of any objects, and the end of the kind of a list of one kind.
const LIST: &str = "List";
/// The fields of a list.
const LIST_FIELDS: [&str; 4] = ["apiVersion", "items", "kind", "metadata"];
/// The group of Operator Lifecycle Manager v0.
const EARLIER_GROUP: &str = "operators.coreos.com";

/// What an object of a file is to a loadout.
pub(super) enum FileObject<'a> {
    /// An Operator.
    Operator,
    /// A list, with its items.
    List(&'a [Value]),
    /// An object that is of no concern.
    Other,
}

/// Returns what an object is, or the defect that keeps it from being an object or an Operator.
pub(super) fn classify(value: &Value) -> Result<FileObject<'_>, FieldDefect> {
    if !value.is_object() {
        let message = "a manifest is a mapping with apiVersion, kind and metadata";
        return Err(FieldDefect::unreadable("", message));
    }
    let (Some(api_version), Some(kind)) = (value["apiVersion"].as_str(), value["kind"].as_str())
    else {
        let mut missing = vec!["apiVersion", "kind"];
        missing.retain(|it| !value[*it].is_string());
        let verb = if missing.len() == 1 { "is" } else { "are" };
        let message = format!("{} {verb} missing: no manifest", missing.join(" and "));
        return Err(FieldDefect::unreadable("", message));
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if let Some(items) = items(value, group, kind)? {
        return Ok(FileObject::List(items));
    }
    match group {
        _ if group == OPERATOR.group => of_layer(version, kind),
        _ if kind == OPERATOR.api_version() => {
            let message = format!(
                "apiVersion and kind are the wrong way round: write apiVersion {kind} and kind {}",
                OPERATOR.kind
            );
            Err(FieldDefect::unreadable("kind", message))
        }
        "" | EARLIER_GROUP => misplaced(api_version, group, kind, value),
        _ if is_meant(kind) && (is_like_ours(group) || version == OPERATOR.group) => {
            let message = format!("there is no group {group}: write {}", OPERATOR.api_version());
            Err(FieldDefect::unreadable("apiVersion", message))
        }
        _ => Ok(FileObject::Other),
    }
}

/// Returns the items of a list; `None` for another object.
fn items<'a>(
    value: &'a Value,
    group: &str,
    kind: &str,
) -> Result<Option<&'a [Value]>, FieldDefect> {
    let is_ours = is_our_list(group, kind);
    match &value["items"] {
        Value::Array(items) if is_ours => Ok(Some(items.as_slice())),
        Value::Array(items) if kind.ends_with(LIST) && items.iter().all(Value::is_object) => {
            Ok(Some(items.as_slice()))
        }
        Value::Null if is_ours => Ok(Some(<&[Value]>::default())),
        _ if is_ours => Err(FieldDefect::unreadable("items", "items is no list of objects")),
        _ => Ok(None),
    }
}

/// Returns whether a kind is a list of any objects, or of Operators.
fn is_our_list(group: &str, kind: &str) -> bool {
    (group.is_empty() && kind == LIST)
        || (group == OPERATOR.group && kind.strip_suffix(LIST) == Some(OPERATOR.kind))
}

/// Returns the fields that a list does not have: `items` may be misspelt.
pub(super) fn list_defects(list: &Value) -> Vec<FieldDefect> {
    let text = |field: &str| list[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    if !is_our_list(group, text("kind")) {
        return Vec::new();
    }
    let fields = list.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
    let unknown = fields.filter(|it| !LIST_FIELDS.contains(it));
    let defect = |field: &str| {
        let instead = match most_similar(field, LIST_FIELDS.into_iter()) {
            None => format!("; there is {}", LIST_FIELDS.join(", ")),
            similar => meant(similar),
        };
        FieldDefect::unreadable(field, format!("a list has no field {field}{instead}"))
    };
    unknown.map(defect).collect()
}

/// Returns an item of a list with the kind that the list says it has, where it has none itself.
pub(super) fn item<'a>(list: &Value, item: &'a Value) -> Cow<'a, Value> {
    let kind = list["kind"].as_str().and_then(|it| it.strip_suffix(LIST)).unwrap_or_default();
    let has_kind = !item["apiVersion"].is_null() || !item["kind"].is_null();
    if kind.is_empty() || has_kind || !item.is_object() {
        return Cow::Borrowed(item);
    }
    let mut item = item.clone();
    item["apiVersion"] = list["apiVersion"].clone();
    item["kind"] = kind.into();
    Cow::Owned(item)
}

/// Returns what an object of the group of the add-on layer is.
fn of_layer<'a>(version: &str, kind: &str) -> Result<FileObject<'a>, FieldDefect> {
    let api_version = OPERATOR.api_version();
    if version != OPERATOR.version {
        let group = OPERATOR.group;
        let message = format!("{group} has no version {version}: write {api_version}");
        return Err(FieldDefect::unreadable("apiVersion", message));
    }
    if kind == OPERATOR.kind {
        return Ok(FileObject::Operator);
    }
    let known = KINDS.iter().map(|it| it.kind);
    if known.clone().any(|it| kind.strip_suffix(LIST).unwrap_or(kind) == it) {
        return Ok(FileObject::Other);
    }
    let instead = match most_similar(kind, known.clone()) {
        None => format!("; there is {}", known.collect::<Vec<_>>().join(", ")),
        similar => meant(similar),
    };
    let message = format!("{api_version} has no kind {kind}{instead}");
    Err(FieldDefect::unreadable("kind", message))
}

/// Returns what an object of a group is that has an Operator of its own, or none.
fn misplaced<'a>(
    api_version: &str,
    group: &str,
    kind: &str,
    value: &Value,
) -> Result<FileObject<'a>, FieldDefect> {
    let wanted = OPERATOR.api_version();
    if group == EARLIER_GROUP {
        if kind != OPERATOR.kind {
            return Ok(FileObject::Other);
        }
        let message = format!(
            "the Operator of {group} is what Operator Lifecycle Manager v0 shows of what it has installed, and \
             requests nothing: write {wanted}"
        );
        return Err(FieldDefect::unreadable("apiVersion", message));
    }
    if is_meant(kind) {
        let kind_too = if kind == OPERATOR.kind { "" } else { " and kind Operator" };
        let message =
            format!("{api_version} has no kind {kind}: write apiVersion {wanted}{kind_too}");
        return Err(FieldDefect::unreadable("apiVersion", message));
    }
    if value["items"].is_array() && is_misspelt(kind, LIST) {
        let message = format!("{api_version} has no kind {kind}{}", meant(Some(LIST)));
        return Err(FieldDefect::unreadable("kind", message));
    }
    Ok(FileObject::Other)
}

/// Returns whether a group is that of the add-on layer misspelt, or one below it, of which there is none.
fn is_like_ours(group: &str) -> bool {
    let lower = group.to_lowercase();
    let below = lower.strip_suffix(OPERATOR.group).is_some_and(|it| it.ends_with('.'));
    below || lower == OPERATOR.group || is_misspelt(&lower, OPERATOR.group)
}

/// Returns whether a kind is Operator, or that misspelt.
fn is_meant(kind: &str) -> bool {
    kind == OPERATOR.kind || is_misspelt(kind, OPERATOR.kind)
}
