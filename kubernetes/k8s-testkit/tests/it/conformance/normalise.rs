//! Answers without what differs from run to run.
//!
//! Identifiers are replaced by their order of appearance within the case, resource versions of
//! objects by their rank, so that it stays visible which are the same and which is greater. Those
//! of lists and bookmarks depend on what else happens on the server.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::ask::Answer;
use super::case::Case;

/// Stands for the revision of a list or a bookmark.
const REVISION: &str = "{revision}";

/// The answers of a case as they are recorded.
pub(super) fn normalise(case: &Case, answers: &[Answer]) -> Vec<Value> {
    let mut documents: Vec<Value> = answers
        .iter()
        .map(|answer| {
            let mut document = answer.document.clone();
            hide_revisions(&mut document);
            for pointer in answer.step.hide.iter().filter(|it| it.starts_with("/headers/")) {
                hide(&mut document, &segments(pointer));
            }
            for part in ["body", "events"] {
                settle_managed_fields(&mut document[part], case.managed);
                settle_causes(&mut document[part]);
                for pointer in &answer.step.hide {
                    hide(&mut document[part], &segments(pointer));
                }
                if !answer.step.show.is_empty() && !document[part].is_null() {
                    document[part] = shown(&document[part], &answer.step.show);
                }
                if document[part].is_null() {
                    document.as_object_mut().expect("an answer is an object").remove(part);
                }
            }
            document
        })
        .collect();
    let names = Names::new(case, &documents);
    for document in &mut documents {
        names.rename(document, "");
    }
    documents
}

/// Lists and bookmarks carry the revision of the whole server, and tokens of it.
fn hide_revisions(value: &mut Value) {
    let is_bookmark = value["type"] == "BOOKMARK";
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_revisions),
        Value::Object(fields) => {
            let is_list = fields.contains_key("items") || fields.contains_key("rows");
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata")
                && is_list
            {
                hide_revision(metadata);
            }
            if is_bookmark
                && let Some(object) = fields.get_mut("object")
                && let Some(metadata) = object["metadata"].as_object_mut()
            {
                hide_revision(metadata);
            }
            fields.values_mut().for_each(hide_revisions);
        }
        _ => {}
    }
}

fn hide_revision(metadata: &mut Map<String, Value>) {
    for (field, shown) in [("resourceVersion", REVISION), ("continue", "{token}")] {
        if metadata.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
            metadata.insert(field.to_owned(), shown.into());
        }
    }
}

/// Entries of one second are in another order than those of two; causes of conflicts in none.
fn settle_managed_fields(value: &mut Value, shown: bool) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| settle_managed_fields(item, shown));
        }
        Value::Object(fields) => {
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                if !shown {
                    metadata.remove("managedFields");
                } else if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
                    entries.sort_by_key(|entry| {
                        ["manager", "operation", "subresource", "apiVersion"]
                            .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
                    });
                }
            }
            fields.values_mut().for_each(|field| settle_managed_fields(field, shown));
        }
        _ => {}
    }
}

/// Conflicts, and errors found by a schema, come in the order of Go's maps: in none.
fn settle_causes(body: &mut Value) {
    let group = body["details"]["group"].as_str().unwrap_or_default();
    let is_by_schema = group.ends_with("example.com") || group == "apiextensions.k8s.io";
    if body["reason"] != "Conflict" && !(body["reason"] == "Invalid" && is_by_schema) {
        return;
    }
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else {
        return;
    };
    causes.sort_by_key(Value::to_string);
    let listed: Vec<String> = causes
        .iter()
        .map(|cause| [&cause["field"], &cause["message"]].map(|text| text.as_str().unwrap_or("")))
        .map(|[field, message]| format!("{field}: {message}"))
        .collect();
    let message = body["message"].as_str().unwrap_or_default();
    if let Some((start, list)) = message.split_once(" is invalid: [")
        && listed.iter().all(|cause| list.contains(cause.as_str()))
    {
        body["message"] = format!("{start} is invalid: [{}]", listed.join(", ")).into();
    }
}

fn segments(pointer: &str) -> Vec<String> {
    let unescape = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(unescape).collect()
}

fn hide(value: &mut Value, segments: &[String]) {
    let Some((first, rest)) = segments.split_first() else { return };
    match value {
        Value::Object(fields) if first == "*" => {
            fields.values_mut().for_each(|field| hide(field, rest));
        }
        Value::Object(fields) if rest.is_empty() => drop(fields.remove(first)),
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(first) {
                hide(field, rest);
            }
        }
        Value::Array(items) if first == "*" => items.iter_mut().for_each(|item| hide(item, rest)),
        Value::Array(items) => {
            if let Some(item) = first.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                if rest.is_empty() {
                    *item = Value::Null;
                }
                hide(item, rest);
            }
        }
        _ => {}
    }
}

/// What lies at the pointers, by pointer.
fn shown(value: &Value, pointers: &[String]) -> Value {
    let found = pointers.iter().map(|pointer| {
        let mut values = Vec::new();
        find(value, &segments(pointer), &mut values);
        let is_many = pointer.contains("/*");
        let values = if is_many { values.into() } else { values.pop().unwrap_or(Value::Null) };
        (pointer.clone(), values)
    });
    Value::Object(found.collect())
}

fn find(value: &Value, segments: &[String], found: &mut Vec<Value>) {
    let Some((first, rest)) = segments.split_first() else {
        found.push(value.clone());
        return;
    };
    match value {
        Value::Object(fields) if first == "*" => {
            fields.values().for_each(|field| find(field, rest, found));
        }
        Value::Array(items) if first == "*" => {
            items.iter().for_each(|item| find(item, rest, found));
        }
        Value::Object(fields) => {
            if let Some(field) = fields.get(first) {
                find(field, rest, found);
            }
        }
        Value::Array(items) => {
            if let Some(item) = first.parse::<usize>().ok().and_then(|index| items.get(index)) {
                find(item, rest, found);
            }
        }
        _ => {}
    }
}

/// What is replaced by what, in all answers of a case alike.
struct Names {
    namespace: String,
    uids: BTreeMap<String, String>,
    revisions: BTreeMap<u64, String>,
    suffixes: BTreeMap<String, String>,
    patterns: Patterns,
}

struct Patterns {
    token_volume: Regex,
    uid: Regex,
    time: Regex,
    micro_time: Regex,
    revision: Regex,
    address: Regex,
    age: Regex,
}

impl Names {
    fn new(case: &Case, documents: &[Value]) -> Self {
        let pattern = |text| Regex::new(text).expect("a constant pattern");
        let mut names = Self {
            namespace: case.namespace(),
            uids: BTreeMap::new(),
            revisions: BTreeMap::new(),
            suffixes: BTreeMap::new(),
            patterns: Patterns {
                token_volume: pattern(r"kube-api-access-[a-z0-9]{5}"),
                uid: pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
                time: pattern(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"),
                micro_time: pattern(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{1,9}Z"),
                revision: pattern(
                    r#"((?:[vV]ersion|record|current|precondition)[\\":( ]{0,8})([1-9][0-9]*)\b"#,
                ),
                address: pattern(r"\b10\.(?:0|96)\.[0-9]{1,3}\.[0-9]{1,3}\b"),
                age: pattern(r"^[0-9]{1,2}s$"),
            },
        };
        let mut revisions = BTreeSet::new();
        for document in documents {
            names.collect(document, &mut revisions);
        }
        names.revisions = revisions
            .into_iter()
            .enumerate()
            .map(|(rank, revision)| (revision, format!("{{rv {}}}", rank + 1)))
            .collect();
        names
    }

    fn collect(&mut self, value: &Value, revisions: &mut BTreeSet<u64>) {
        match value {
            Value::String(text) => {
                for uid in self.patterns.uid.find_iter(text) {
                    let next = format!("{{uid {}}}", self.uids.len() + 1);
                    self.uids.entry(uid.as_str().to_owned()).or_insert(next);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, revisions)),
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                    && let Some(suffix) = name.strip_prefix(prefix)
                    && !suffix.is_empty()
                {
                    let next = format!("{{suffix {}}}", self.suffixes.len() + 1);
                    self.suffixes.entry(suffix.to_owned()).or_insert(next);
                }
                for (name, field) in fields {
                    if name.ends_with("esourceVersion")
                        && let Some(revision) = field.as_str().and_then(|text| text.parse().ok())
                    {
                        revisions.insert(revision);
                    }
                    self.collect(field, revisions);
                }
            }
            _ => {}
        }
    }

    fn rename(&self, value: &mut Value, field: &str) {
        match value {
            Value::String(text) => *text = self.renamed(text, field),
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item, field)),
            Value::Object(fields) => {
                let before = std::mem::take(fields);
                for (name, mut inner) in before {
                    self.rename(&mut inner, &name);
                    if matches!(name.as_str(), "nodePort" | "healthCheckNodePort") {
                        inner = "{port}".into();
                    }
                    fields.insert(self.renamed(&name, ""), inner);
                }
            }
            _ => {}
        }
    }

    fn renamed(&self, text: &str, field: &str) -> String {
        if field.ends_with("esourceVersion") {
            let known = text.parse().ok().and_then(|revision: u64| self.revisions.get(&revision));
            return known.cloned().unwrap_or_else(|| text.to_owned());
        }
        let Patterns { token_volume, uid, time, micro_time, revision, address, age } =
            &self.patterns;
        if field == "cells" && age.is_match(text) {
            return "{age}".to_owned();
        }
        let text = text.replace(&self.namespace, "{ns}");
        let text = uid.replace_all(&text, |found: &Captures<'_>| {
            self.uids.get(&found[0]).cloned().unwrap_or_default()
        });
        let text = micro_time.replace_all(&text, "{micro time}");
        let text = time.replace_all(&text, "{time}");
        let text = token_volume.replace_all(&text, "kube-api-access-{suffix}");
        let text = address.replace_all(&text, "{address}");
        let text = revision.replace_all(&text, |found: &Captures<'_>| {
            let known = found[2].parse().ok().and_then(|number: u64| self.revisions.get(&number));
            format!("{}{}", &found[1], known.map_or("{revision}", String::as_str))
        });
        let mut text = text.into_owned();
        for (suffix, shown) in &self.suffixes {
            text = text.replace(suffix.as_str(), shown);
        }
        text
    }
}
