//! Random sequences of requests on one object.
use serde_json::{Map, Value, json};

use super::random::Random;
use super::request::{Body, Request};
use super::shape::{Shape, Taste};
use super::target::Target;

mod json_patch;
mod strategic;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const JSON: &str = "application/json";

const APPLIERS: [&str; 4] = ["red", "green", "blue", "kubectl"];
const WRITERS: [&str; 4] = ["red", "editor", "robot", "kubectl-edit"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What makes a sequence.
pub(super) struct Maker<'a> {
    pub(super) target: &'a Target,
    pub(super) random: Random,
}

impl Maker<'_> {
    /// A sequence of requests.
    pub(super) fn sequence(mut self) -> Vec<Request> {
        let length = 5 + self.random.below(12);
        let mut requests = Vec::with_capacity(length + 1);
        if self.random.percent(55) {
            requests.push(self.create());
        } else {
            requests.push(self.apply());
        }
        while requests.len() < length {
            let request = self.request();
            requests.push(request);
        }
        for version in 0..self.target.versions.len() {
            requests.push(Request {
                method: "GET",
                target: format!("{}/{{name}}", self.target.collection(version)),
                content_type: "",
                body: Body::Nothing,
            });
        }
        requests
    }

    fn request(&mut self) -> Request {
        match self.random.below(42) {
            0..17 => self.apply(),
            17..22 => self.update(),
            22..26 => self.merge(),
            26..29 => self.json_patch(),
            29..33 => self.strategic(),
            33..36 if self.target.has_status => self.status(),
            33..36 => self.apply(),
            36 if self.target.has_scale => self.scale(),
            36 => self.merge(),
            37 => self.managed_fields(),
            38 => self.create(),
            _ if self.random.percent(40) => self.delete(),
            _ => self.finalizers(),
        }
    }

    fn version(&mut self) -> usize {
        if self.random.percent(70) { 0 } else { self.random.below(self.target.versions.len()) }
    }

    /// The object's path with a query.
    fn path(&mut self, version: usize, below: &str, query: &str) -> String {
        let dry = if self.random.percent(6) { "&dryRun=All" } else { "" };
        let validation = match self.random.below(20) {
            0 => "&fieldValidation=Strict",
            1 => "&fieldValidation=Ignore",
            _ => "",
        };
        format!("{}/{{name}}{below}?{query}{dry}{validation}", self.target.collection(version))
    }

    /// Parts of the object; of its status only if asked for.
    fn fields(&mut self, version: usize, taste: Taste, status: bool) -> Map<String, Value> {
        let shape = &self.target.versions[version].shape;
        let mut out = Map::new();
        for field in shape.fields() {
            let is_status = field.name == "status";
            if is_status && !status {
                continue;
            }
            let percent = if is_status || field.required { taste.required } else { taste.fill };
            if self.random.percent(percent) {
                let value = field.shape.value(&mut self.random, taste);
                out.insert(field.name.to_owned(), value);
            }
        }
        out
    }

    fn metadata(&mut self) -> Value {
        let mut metadata = json!({"name": "{name}"});
        let words = Shape::words(&["x", "y", ""]);
        let labels = Shape::Map(Box::new(words), super::shape::Ownership::Granular);
        for key in ["labels", "annotations"] {
            if self.random.percent(25) {
                let value = labels.value(&mut self.random, Taste::WHOLE);
                // A real server keeps an empty map of an apply at rest until the next write.
                if value.as_object().is_none_or(|map| !map.is_empty()) {
                    metadata[key] = value;
                }
            }
        }
        if self.random.percent(5) {
            metadata["finalizers"] = json!(["example.com/one"]);
        }
        if self.random.percent(3) {
            metadata["creationTimestamp"] = Value::Null;
        }
        metadata
    }

    fn whole(&mut self, version: usize, taste: Taste, status: bool) -> Value {
        let mut object = Value::Object(self.fields(version, taste, status));
        object["apiVersion"] = self.target.versions[version].api_version.clone().into();
        object["kind"] = self.target.kind.into();
        object["metadata"] = self.metadata();
        object
    }

    fn create(&mut self) -> Request {
        let version = self.version();
        let mut object = self.whole(version, Taste::WHOLE, false);
        if self.random.percent(25) {
            let applied = object.to_string();
            object["metadata"]["annotations"][LAST_APPLIED] = applied.into();
        }
        let manager = self.writer();
        let dry = if self.random.percent(5) { "&dryRun=All" } else { "" };
        Request {
            method: "POST",
            target: format!("{}?{manager}{dry}", self.target.collection(version)),
            content_type: JSON,
            body: Body::Document(object),
        }
    }

    fn writer(&mut self) -> String {
        if self.random.percent(10) {
            return String::new();
        }
        format!("fieldManager={}", self.random.pick(&WRITERS))
    }

    fn apply(&mut self) -> Request {
        let version = self.version();
        let mut object = self.whole(version, Taste::PART, self.target.has_status);
        if self.target.has_status && self.random.percent(80) {
            object.as_object_mut().map(|object| object.remove("status"));
        }
        if self.random.percent(2) {
            object["metadata"]["resourceVersion"] = "1".into();
        }
        if self.random.percent(1) {
            object["metadata"]["name"] = "another".into();
        }
        let count = 2 + self.random.below(3);
        let manager = APPLIERS[self.random.below(count)];
        let force = if self.random.percent(45) { "&force=true" } else { "" };
        Request {
            method: "PATCH",
            target: self.path(version, "", &format!("fieldManager={manager}{force}")),
            content_type: APPLY,
            body: Body::Document(object),
        }
    }

    fn update(&mut self) -> Request {
        let version = self.version();
        let changes = self.fields(version, Taste::WHOLE, self.target.has_status);
        let manager = self.writer();
        let labels = self.random.percent(20).then(|| json!({"ka": "updated"}));
        Request {
            method: "PUT",
            target: self.path(version, "", &manager),
            content_type: JSON,
            body: Body::Edited {
                changes: self.typed(version, changes),
                labels,
                managed: None,
                keeps_version: self.random.percent(60),
            },
        }
    }

    /// The fields with the type of the version.
    fn typed(&self, version: usize, mut fields: Map<String, Value>) -> Map<String, Value> {
        let api_version = self.target.versions[version].api_version.clone();
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), self.target.kind.into());
        fields
    }

    fn patch(&mut self, version: usize, below: &str, kind: &'static str, body: Value) -> Request {
        let manager = self.writer();
        Request {
            method: "PATCH",
            target: self.path(version, below, &manager),
            content_type: kind,
            body: Body::Document(body),
        }
    }

    fn merge(&mut self) -> Request {
        let version = self.version();
        let mut patch = Value::Object(self.fields(version, Taste::PART, false));
        let shape = self.target.versions[version].shape.clone();
        nulls(&mut patch, &shape, &mut self.random);
        if self.random.percent(20) {
            let label = self.random.pick(&[json!("m"), Value::Null]).clone();
            patch["metadata"] = json!({"labels": {"ka": label}});
        }
        self.patch(version, "", MERGE, patch)
    }

    fn json_patch(&mut self) -> Request {
        let version = self.version();
        let shape = self.target.versions[version].shape.clone();
        let patch = json_patch::random(&shape, &mut self.random);
        self.patch(version, "", JSON_PATCH, patch)
    }

    fn strategic(&mut self) -> Request {
        if self.target.definition.is_some() && self.random.percent(85) {
            return self.apply();
        }
        let version = self.version();
        let shape = self.target.versions[version].shape.clone();
        let mut patch = Value::Object(self.fields(version, Taste::PART, false));
        strategic::direct(&mut patch, &shape, &mut self.random);
        self.patch(version, "", STRATEGIC, patch)
    }

    fn status(&mut self) -> Request {
        let version = self.version();
        let taste = Taste::WHOLE;
        match self.random.below(3) {
            0 => {
                let object = self.whole(version, taste, true);
                let manager = *self.random.pick(&APPLIERS);
                let force = if self.random.percent(50) { "&force=true" } else { "" };
                Request {
                    method: "PATCH",
                    target: self.path(
                        version,
                        "/status",
                        &format!("fieldManager={manager}{force}"),
                    ),
                    content_type: APPLY,
                    body: Body::Document(object),
                }
            }
            1 => {
                let changes = self.fields(version, Taste::WHOLE, true);
                let manager = self.writer();
                Request {
                    method: "PUT",
                    target: self.path(version, "/status", &manager),
                    content_type: JSON,
                    body: Body::Edited {
                        changes: self.typed(version, changes),
                        labels: self.random.percent(20).then(|| json!({"ka": "status"})),
                        managed: None,
                        keeps_version: self.random.percent(60),
                    },
                }
            }
            _ => {
                let mut patch = Value::Object(self.fields(version, taste, true));
                let shape = self.target.versions[version].shape.clone();
                nulls(&mut patch, &shape, &mut self.random);
                self.patch(version, "/status", MERGE, patch)
            }
        }
    }

    fn scale(&mut self) -> Request {
        let version = self.version();
        let replicas = self.random.below(4);
        let patch = json!({"spec": {"replicas": replicas}});
        // A kube-apiserver fails at applies through the scale of a custom resource.
        if self.target.definition.is_none() && self.random.percent(40) {
            let scale = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {"name": "{name}"}, "spec": {"replicas": replicas},
            });
            let manager = *self.random.pick(&APPLIERS);
            let force = if self.random.percent(50) { "&force=true" } else { "" };
            let query = format!("fieldManager={manager}{force}");
            return Request {
                method: "PATCH",
                target: self.path(version, "/scale", &query),
                content_type: APPLY,
                body: Body::Document(scale),
            };
        }
        self.patch(version, "/scale", MERGE, patch)
    }

    /// A change of the record of ownership itself.
    fn managed_fields(&mut self) -> Request {
        let version = self.version();
        let api_version = self.target.versions[version].api_version.as_str();
        let entry = |manager: &str, operation: &str, fields: Value| {
            json!({
                "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": fields,
                "manager": manager, "operation": operation, "time": "2020-01-01T00:00:00Z",
            })
        };
        let labels = json!({"f:metadata": {"f:labels": {"f:ka": {}}}});
        let many: Vec<Value> = (0..14)
            .map(|index| {
                let fields = json!({"f:metadata": {"f:labels": {format!("f:l{index}"): {}}}});
                let mut entry = entry(&format!("m{index}"), "Update", fields);
                entry["time"] = format!("2020-01-{:02}T00:00:00Z", 1 + index).into();
                entry
            })
            .collect();
        let choices = [
            json!([]),
            json!([{}]),
            Value::Null,
            json!([entry("red", "Apply", labels.clone())]),
            json!([entry("editor", "Update", labels.clone()), entry("red", "Apply", labels)]),
            json!([entry("red", "Wrong", json!({}))]),
            json!([entry("red", "Apply", json!({"x:bad": {}}))]),
            json!([{"manager": "red", "operation": "Apply"}]),
            json!([entry("", "Apply", json!({"f:spec": {}}))]),
            Value::Array(many),
        ];
        let managed = self.random.pick(&choices).clone();
        if self.random.percent(50) {
            return self.patch(version, "", MERGE, json!({"metadata": {"managedFields": managed}}));
        }
        let manager = self.writer();
        Request {
            method: "PUT",
            target: self.path(version, "", &manager),
            content_type: JSON,
            body: Body::Edited {
                changes: self.typed(version, Map::new()),
                labels: self.random.percent(50).then(|| json!({"ka": "managed"})),
                managed: Some(managed),
                keeps_version: true,
            },
        }
    }

    /// A deletion that the server itself ends.
    fn delete(&mut self) -> Request {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        let with = |field: &str, value: Value| {
            let mut options = options.clone();
            options[field] = value;
            Body::Document(options)
        };
        let choices = [
            Body::Nothing,
            Body::Nothing,
            Body::Nothing,
            with("gracePeriodSeconds", json!(0)),
            with("preconditions", json!({"resourceVersion": "1"})),
            with("preconditions", json!({"uid": "someone"})),
            with("propagationPolicy", json!("Anyhow")),
        ];
        let body = self.random.pick(&choices).clone();
        Request {
            method: "DELETE",
            target: self.path(0, "", "propagationPolicy=Background"),
            content_type: if matches!(body, Body::Nothing) { "" } else { JSON },
            body,
        }
    }

    /// Finalizers come and go, and with the last an object that is being deleted.
    fn finalizers(&mut self) -> Request {
        let version = self.version();
        let choices = [
            json!([]),
            Value::Null,
            json!(["example.com/one"]),
            json!(["example.com/two", "example.com/one"]),
            json!(["example.com/one", "example.com/one"]),
            json!(["plain"]),
        ];
        let finalizers = self.random.pick(&choices).clone();
        self.patch(version, "", MERGE, json!({"metadata": {"finalizers": finalizers}}))
    }
}

/// Puts nulls where the shape has fields.
fn nulls(patch: &mut Value, shape: &Shape, random: &mut Random) {
    let Some(entries) = patch.as_object_mut() else { return };
    for field in shape.fields() {
        if random.percent(12) && !field.required {
            entries.insert(field.name.to_owned(), Value::Null);
        } else if let Some(value) = entries.get_mut(field.name) {
            nulls(value, &field.shape, random);
        }
    }
}
