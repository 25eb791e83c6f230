//! Asking a server what a case asks.

use std::collections::BTreeMap;

use futures::{Stream, StreamExt};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::BodyExt;
use k8s_testkit::poll;
use kube::Client;
use kube::client::Body;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use regex::Regex;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::case::{Case, Entry, Step, Until};

/// What a target may not hold as it is; what is encoded already stays so.
const NOT_IN_TARGETS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'[')
    .add(b']');

/// Headers of answers that are compared. `application/json` is the rule and left out.
const COMPARED: [&str; 7] =
    ["allow", "content-encoding", "content-type", "etag", "location", "retry-after", "warning"];

/// An answer as it came.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// What was asked, for messages.
    pub(super) asked: String,
    /// Status, headers, and `body`, `text` or `events`.
    pub(super) document: Value,
    /// The request.
    pub(super) step: Step,
}

/// A case under way.
pub(super) struct Asker {
    client: Client,
    variables: BTreeMap<String, String>,
    variable: Regex,
}

/// Asks everything that a case asks, in its namespace.
///
/// # Errors
/// When something that only prepares is refused, or what is waited for does not come.
pub(super) async fn ask(client: Client, case: &Case) -> Result<Vec<Answer>, String> {
    let mut asker = Asker::new(client, &case.namespace());
    asker.prepare(case).await?;
    let mut answers = Vec::new();
    for entry in &case.requests {
        answers.push(asker.step(&entry.step()).await?);
    }
    Ok(answers)
}

impl Asker {
    fn new(client: Client, namespace: &str) -> Self {
        let mut variables = BTreeMap::from([
            ("ns".to_owned(), namespace.to_owned()),
            ("core".to_owned(), format!("/api/v1/namespaces/{namespace}")),
        ]);
        for (name, version) in [
            ("apps", "apps/v1"),
            ("batch", "batch/v1"),
            ("rbac", "rbac.authorization.k8s.io/v1"),
            ("leases", "coordination.k8s.io/v1"),
            ("policy", "policy/v1"),
            ("net", "networking.k8s.io/v1"),
            ("scaling", "autoscaling/v2"),
            ("events", "events.k8s.io/v1"),
            ("shared", "conformance.example.com/v1"),
        ] {
            variables.insert(name.to_owned(), format!("/apis/{version}/namespaces/{namespace}"));
        }
        for (name, path) in [
            ("crds", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
            ("cluster_rbac", "/apis/rbac.authorization.k8s.io/v1"),
        ] {
            variables.insert(name.to_owned(), path.to_owned());
        }
        let variable = Regex::new(r"\$([a-z_][a-z0-9_]*)").expect("a constant pattern");
        Self { client, variables, variable }
    }

    /// Makes the namespace, and whatever the case wants to be there.
    async fn prepare(&mut self, case: &Case) -> Result<(), String> {
        let namespace = self.fill("$ns");
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        let step = Step {
            target: "POST /api/v1/namespaces".to_owned(),
            json: Some(object),
            ..Step::default()
        };
        self.succeed(&step).await?;
        let steps = || case.given.iter().chain(&case.requests).map(Entry::step);
        if steps().any(|step| step.target.starts_with("POST") && step.target.contains("/pods")) {
            // Pods are refused as long as their service account is not there.
            let step = Step {
                target: "GET $core/serviceaccounts/default".to_owned(),
                until: Some(Until::Status(200)),
                ..Step::default()
            };
            self.succeed(&step).await?;
        }
        for entry in &case.given {
            self.succeed(&entry.step()).await?;
        }
        Ok(())
    }

    /// Makes a request that only prepares.
    async fn succeed(&mut self, step: &Step) -> Result<(), String> {
        let answer = Box::pin(self.step(step)).await?;
        let status = answer.document["status"].as_u64().unwrap_or_default();
        if (200..300).contains(&status) {
            return Ok(());
        }
        Err(format!("{}\n  prepares, but was answered {}", answer.asked, answer.document))
    }

    async fn step(&mut self, step: &Step) -> Result<Answer, String> {
        let asked = self.fill(&step.target);
        let asker = Mutex::new(&mut *self);
        let work = poll("what it waits for", || async {
            let mut asker = asker.lock().await;
            let answered = if step.events.is_some() || !step.meanwhile.is_empty() {
                asker.watch(step).await
            } else {
                asker.request(step).await
            };
            match answered {
                Ok(document) => asker.is_enough(step, &document).then_some(Ok(document)),
                Err(error) => Some(Err(error)),
            }
        });
        let document = work.await.map_err(|error| format!("{asked}\n  {error}"))??;
        for (name, pointer) in &step.save {
            let value = document["body"].pointer(pointer).unwrap_or(&Value::Null);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.variables.insert(name.clone(), value);
        }
        Ok(Answer { asked, document, step: step.clone() })
    }

    fn is_enough(&self, step: &Step, document: &Value) -> bool {
        match &step.until {
            None => true,
            Some(Until::Status(code)) => document["status"] == *code,
            Some(Until::Body(wanted)) => wanted.iter().all(|(pointer, value)| {
                let found = document["body"].pointer(pointer).unwrap_or(&Value::Null);
                *found == self.fill_all(value)
            }),
        }
    }

    async fn request(&self, step: &Step) -> Result<Value, String> {
        let response = self.send(step).await?;
        let mut document = head(&response);
        let bytes = response.into_body().collect().await.map_err(text_of)?.to_bytes();
        if document["headers"].get("content-encoding").is_some() {
            // Compressed bytes are not the same twice.
            return Ok(document);
        }
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(body) if !bytes.is_empty() => document["body"] = body,
            _ => {
                let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
                document["text"] = text.unwrap_or("{bytes}").into();
            }
        }
        Ok(document)
    }

    async fn watch(&mut self, step: &Step) -> Result<Value, String> {
        let response = self.send(step).await?;
        let mut document = head(&response);
        if document["status"] != 200 {
            let bytes = response.into_body().collect().await.map_err(text_of)?.to_bytes();
            document["body"] = read_line(&bytes);
            return Ok(document);
        }
        let mut lines = std::pin::pin!(lines(response.into_body()));
        for entry in &step.meanwhile {
            self.succeed(&entry.step()).await?;
        }
        let mut events = Vec::new();
        while events.len() < step.events.unwrap_or(usize::MAX) {
            match lines.next().await {
                Some(event) if step.bookmarks || !is_plain_bookmark(&event) => events.push(event),
                Some(_) => {}
                None => break,
            }
        }
        document["events"] = events.into();
        Ok(document)
    }

    async fn send(&self, step: &Step) -> Result<http::Response<Body>, String> {
        let target = self.fill(&step.target);
        let (method, path) = target.split_once(' ').ok_or("a target has a method and a path")?;
        let path = utf8_percent_encode(path, NOT_IN_TARGETS).to_string();
        let (media_type, body) = self.body(step);
        let mut request =
            Request::builder().method(method).uri(path).body(Body::from(body)).map_err(text_of)?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static("conformance/1"));
        if let Some(media_type) = media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        if let Some(user) = &step.user {
            let user = self.fill(user);
            headers.insert("impersonate-user", HeaderValue::from_str(&user).map_err(text_of)?);
        }
        for group in &step.groups {
            headers.append("impersonate-group", HeaderValue::from_str(group).map_err(text_of)?);
        }
        self.add_headers(step, headers)?;
        self.client.send(request).await.map_err(text_of)
    }

    fn add_headers(&self, step: &Step, headers: &mut HeaderMap) -> Result<(), String> {
        for (name, value) in &step.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(text_of)?;
            match value {
                Some(value) => {
                    let value = HeaderValue::from_str(&self.fill(value)).map_err(text_of)?;
                    headers.insert(name, value);
                }
                None => drop(headers.remove(name)),
            }
        }
        Ok(())
    }

    fn body(&self, step: &Step) -> (Option<&'static str>, Vec<u8>) {
        let json = |media_type, value: &Value| {
            (Some(media_type), self.fill_all(value).to_string().into_bytes())
        };
        let documents = [
            (&step.json, "application/json"),
            (&step.merge, "application/merge-patch+json"),
            (&step.strategic, "application/strategic-merge-patch+json"),
            (&step.patch, "application/json-patch+json"),
            (&step.apply, "application/apply-patch+yaml"),
        ];
        for (document, media_type) in documents {
            if let Some(document) = document {
                return json(media_type, document);
            }
        }
        if let Some(yaml) = &step.yaml {
            return (Some("application/yaml"), self.fill(yaml).into_bytes());
        }
        if let Some(text) = &step.text {
            return (Some("application/json"), self.fill(text).into_bytes());
        }
        if let Some((before, unit, count, after)) = &step.long {
            let text = format!("{}{}{after}", self.fill(before), unit.repeat(*count));
            return (Some("application/json"), text.into_bytes());
        }
        (None, Vec::new())
    }

    /// A text with the values of the variables in it; what is no variable stays.
    fn fill(&self, text: &str) -> String {
        let filled = self.variable.replace_all(text, |found: &regex::Captures<'_>| {
            self.variables.get(&found[1]).cloned().unwrap_or_else(|| found[0].to_owned())
        });
        filled.into_owned()
    }

    fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (self.fill(name), self.fill_all(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Status and compared headers of an answer.
fn head(response: &http::Response<Body>) -> Value {
    let mut document = json!({"status": response.status().as_u16()});
    for name in COMPARED {
        let values: Vec<Value> = response
            .headers()
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into())
            .filter(|value| name != "content-type" || *value != "application/json")
            .collect();
        if !values.is_empty() {
            document["headers"][name] = values.into();
        }
    }
    document
}

/// Bookmarks come when the server likes; only the one at the end of the initial events is due.
fn is_plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null()
}

/// The lines of a watch, read as JSON as they come.
fn lines(body: Body) -> impl Stream<Item = Value> {
    let data = body.into_data_stream().boxed();
    futures::stream::unfold((data, Vec::<u8>::new()), |(mut data, mut buffer)| async move {
        loop {
            if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                return Some((read_line(&line), (data, buffer)));
            }
            match data.next().await {
                Some(Ok(bytes)) => buffer.extend_from_slice(&bytes),
                Some(Err(_)) | None if buffer.is_empty() => return None,
                Some(Err(_)) | None => {
                    let line = std::mem::take(&mut buffer);
                    return Some((read_line(&line), (data, buffer)));
                }
            }
        }
    })
}

fn read_line(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_else(|_| String::from_utf8_lossy(line).into())
}
