//! Sending a sequence to both servers.
use http::header::{CONTENT_TYPE, USER_AGENT, WARNING};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::Value;

use super::answer::{Answer, Memory, differences};
use super::request::Request;

/// The two servers.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) embedded: Client,
    pub(super) real: Client,
    /// What the real server refuses as invalid may be accepted, which ends a sequence: of built-in
    /// kinds not every rule is known. Warnings about them are not compared either.
    pub(super) lenient: bool,
}

/// Where and how the servers differ.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// The request whose answers differ.
    pub(super) index: usize,
    pub(super) places: Vec<String>,
}

/// Sends one request.
pub(super) async fn send(client: &Client, request: &Request, live: &Value, name: &str) -> Answer {
    let target = request.target.replace("{name}", name);
    let mut builder = http::Request::builder()
        .method(request.method)
        .uri(target)
        .header(USER_AGENT, "differential/1");
    let body = match request.document(live, name) {
        Some(document) => {
            builder = builder.header(CONTENT_TYPE, request.content_type);
            document.to_string().into_bytes()
        }
        None => Vec::new(),
    };
    let http_request = builder.body(kube::client::Body::from(body)).expect("it is well-formed");
    let response = client.send(http_request).await.expect("the server answers");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("the answer has an end").to_bytes();
    let warnings = parts
        .headers
        .get_all(WARNING)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { code: parts.status.as_u16(), warnings, body }
}

impl Pair {
    /// The first difference that a sequence shows, if there is one.
    pub(super) async fn run(&self, requests: &[Request], name: &str) -> Option<Difference> {
        let (mut ours, mut theirs) = (Memory::default(), Memory::default());
        for (index, request) in requests.iter().enumerate() {
            let (our, their) = tokio::join!(
                send(&self.embedded, request, &ours.live, name),
                send(&self.real, request, &theirs.live, name),
            );
            let (mut left, mut right) = (our.normalized(&ours), their.normalized(&theirs));
            if self.lenient {
                left["warnings"] = Value::Null;
                right["warnings"] = Value::Null;
            }
            let places = differences(&left, &right);
            if their.is_defect() && self.lenient {
                if our.code == their.code {
                    continue;
                }
                return None;
            }
            if !places.is_empty() {
                return Some(Difference { index, places });
            }
            if our.is_object() && !request.target.contains("dryRun=All") {
                (ours.live, theirs.live) = (our.body, their.body);
            }
        }
        None
    }

    /// Makes a failing sequence shorter; `name` begins the names of the objects used for it.
    pub(super) async fn shrink(
        &self,
        mut requests: Vec<Request>,
        mut difference: Difference,
        name: &str,
    ) -> (Vec<Request>, Difference) {
        requests.truncate(difference.index + 1);
        let mut attempt = 0;
        let mut index = requests.len() - 1;
        while index > 0 {
            index -= 1;
            let mut fewer = requests.clone();
            fewer.remove(index);
            attempt += 1;
            if let Some(found) = self.run(&fewer, &format!("{name}-{attempt}")).await {
                fewer.truncate(found.index + 1);
                index = index.min(fewer.len().saturating_sub(1));
                requests = fewer;
                difference = found;
            }
        }
        (requests, difference)
    }
}
