//! What is refused, and in which words: answers recorded from kube-apiserver 1.37.1.
//!
//! `built_in.json`: objects of built-in kinds, as changes of a fine one; `definitions.json`:
//! CustomResourceDefinitions; `objects.json`: `spec`s of custom objects under a schema. Causes are
//! sorted, because the order of some is random in kube-apiserver.
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{Ask, TestCluster};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Objects that differ a little from one that is fine.
#[derive(Deserialize)]
struct Kind {
    name: String,
    path: String,
    base: Value,
    cases: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    /// Places with a new value; a place alone is taken away.
    set: Vec<Vec<Value>>,
    /// Sorted causes, or code and message; nothing if it is accepted.
    refused: Value,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    definition: Value,
    refused: Value,
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Typed {
    schema: Value,
    cases: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    spec: Value,
    refused: Value,
    /// What is stored of what is accepted.
    stored: Option<Value>,
}

/// Puts a value at a place such as `spec/containers/0`, or takes it away.
fn place(object: &mut Value, path: &str, value: Option<&Value>) {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    let mut at = object;
    for segment in parent.split('/').filter(|segment| !segment.is_empty()) {
        at = match segment.parse::<usize>() {
            Ok(index) if at.is_array() => &mut at[index],
            _ => &mut at[segment],
        };
    }
    match (at, value) {
        (Value::Array(items), Some(value)) => {
            let index: usize = last.parse().unwrap();
            if index == items.len() {
                items.push(value.clone());
            } else {
                items[index] = value.clone();
            }
        }
        (Value::Array(items), None) => drop(items.remove(last.parse().unwrap())),
        (at, Some(value)) => at[last] = value.clone(),
        (at, None) => drop(at.as_object_mut().unwrap().remove(last)),
    }
}

/// Sends a create that changes nothing; returns what it is refused with, the answer and warnings.
fn attempt(cluster: &TestCluster, path: &str, object: &Value) -> (Value, Value, Vec<String>) {
    let response = cluster.send(Ask {
        line: &format!("POST {path}?dryRun=All"),
        body: &object.to_string(),
        ..Ask::default()
    });
    let code = response.status().as_u16();
    let warnings = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|warning| warning.to_str().unwrap().trim_start_matches("299 - ").to_owned())
        .collect();
    let whole = response.into_body().collect().now_or_never().expect("the body is whole");
    let answer: Value = serde_json::from_slice(&whole.unwrap().to_bytes()).unwrap();
    let refused = match code {
        200..300 => json!([]),
        422 => {
            let mut causes: Vec<String> = answer["details"]["causes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|cause| {
                    let text = |field: &str| cause[field].as_str().unwrap_or_default();
                    format!("{}: {}", text("field"), text("message"))
                })
                .collect();
            causes.sort();
            causes.into()
        }
        _ => format!("{code} {}", answer["message"].as_str().unwrap_or_default()).into(),
    };
    (refused, answer, warnings)
}

#[test]
fn built_in_kinds_are_refused_in_kube_apiservers_words() {
    let kinds: Vec<Kind> = serde_json::from_str(include_str!("refusals/built_in.json")).unwrap();
    let cluster = TestCluster::new();
    let mut wrong = Vec::new();
    for kind in kinds {
        for case in kind.cases {
            let mut object = kind.base.clone();
            for change in &case.set {
                place(&mut object, change[0].as_str().unwrap(), change.get(1));
            }
            let (refused, _, _) = attempt(&cluster, &kind.path, &object);
            if refused != case.refused {
                wrong.push(format!("{} {:?}: {refused}", kind.name, case.set));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn definitions_are_refused_in_apiextensions_words() {
    let cases: Vec<Definition> =
        serde_json::from_str(include_str!("refusals/definitions.json")).unwrap();
    let cluster = TestCluster::new();
    let mut wrong = Vec::new();
    for case in cases {
        let (refused, _, warnings) = attempt(&cluster, DEFINITIONS, &case.definition);
        if refused != case.refused || warnings != case.warnings {
            wrong.push(format!("{}: {refused} {warnings:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn custom_objects_are_refused_in_apiextensions_words() {
    let kinds: Vec<Typed> = serde_json::from_str(include_str!("refusals/objects.json")).unwrap();
    let cluster = TestCluster::new();
    let mut wrong = Vec::new();
    for (index, typed) in kinds.into_iter().enumerate() {
        let (plural, kind) = (format!("kinds{index}"), format!("Kind{index}"));
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com",
                "names": {"plural": plural, "kind": kind},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": typed.schema}},
                }}],
            },
        });
        cluster.check(&format!("POST {DEFINITIONS}"), &definition.to_string(), 201, "");
        let path = format!("/apis/example.com/v1/namespaces/default/{plural}");
        for case in typed.cases {
            let object = json!({
                "apiVersion": "example.com/v1",
                "kind": kind,
                "metadata": {"name": "a"},
                "spec": case.spec,
            });
            let (refused, answer, _) = attempt(&cluster, &path, &object);
            // Messages name the kind in front of their text.
            let shown = refused.to_string().replace(&kind, "KIND");
            let expected = renamed(&case.refused);
            let stored = case.stored.is_some_and(|stored| stored != answer["spec"]);
            if shown != expected || stored {
                wrong.push(format!("{} {}: {answer}", typed.schema, case.spec));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A recorded refusal with the recorded kind, `Bar` and a number, replaced.
fn renamed(refused: &Value) -> String {
    let text = refused.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find("Bar") {
        let after = &rest[start + 3..];
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        out.push_str(&rest[..start]);
        out.push_str(if digits == 0 { "Bar" } else { "KIND" });
        rest = &after[digits..];
    }
    out + rest
}
