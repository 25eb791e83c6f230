//! Sending a sequence to both servers.
use std::sync::Arc;

use http::header::{CONTENT_TYPE, USER_AGENT, WARNING};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::Value;

use super::answer::{Answer, Memory, differences};
use super::leniencies::{Leniencies, Leniency};
use super::request::Request;

/// The two servers.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) embedded: Client,
    pub(super) real: Client,
    /// What the real server refuses as invalid may be accepted, which ends a sequence: of built-in
    /// kinds not every rule is known. Warnings about them are not compared either.
    pub(super) lenient: bool,
    /// What was tolerated so far.
    pub(super) leniencies: Arc<Leniencies>,
}

/// Where and how the servers differ.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// The request whose answers differ.
    pub(super) index: usize,
    pub(super) places: Vec<String>,
}

/// Sends one request; there is no answer where the server gives up, which a real one does when its
/// handler panics.
pub(super) async fn send(
    client: &Client,
    request: &Request,
    live: &Value,
    name: &str,
) -> Option<Answer> {
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
    let response = client.send(http_request).await.ok()?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.ok()?.to_bytes();
    let warnings = parts
        .headers
        .get_all(WARNING)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Some(Answer { code: parts.status.as_u16(), warnings, body })
}

/// Waits until the cache of a real server has the object as it was last answered. An update is tried
/// on the cached object first, and an older one adds the warnings that it would have caused.
///
/// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: GuaranteedUpdate
async fn wait_for_cache(client: &Client, request: &Request, live: &Value, name: &str) {
    let (Some(revision), Some((before, _))) =
        (live["metadata"]["resourceVersion"].as_str(), request.target.split_once("{name}"))
    else {
        return;
    };
    let get = http::Request::get(format!("{before}{name}?resourceVersion={revision}"));
    let get = get.body(kube::client::Body::empty()).expect("it is well-formed");
    if let Ok(response) = client.send(get).await {
        // Whatever the answer is, it comes once the cache is as new as the revision.
        let _ = response.into_body().collect().await;
    }
}

/// Where answers have their resource version.
const REVISION: &str = "/body/metadata/resourceVersion";

/// Whether only the real server wrote. It keeps what an apply has emptied at rest as it came, and
/// writes it anew with the next request that changes nothing.
fn is_written_once_more(ours: &Value, theirs: &Value) -> bool {
    ours.pointer(REVISION).is_some_and(|ours| ours == "SAME")
        && theirs.pointer(REVISION).is_some_and(|theirs| theirs == "NEW")
}

impl Pair {
    /// The first difference that a sequence shows, if there is one.
    pub(super) async fn run(&self, requests: &[Request], name: &str) -> Option<Difference> {
        let (mut ours, mut theirs) = (Memory::default(), Memory::default());
        for (index, request) in requests.iter().enumerate() {
            wait_for_cache(&self.real, request, &theirs.live, name).await;
            let (our, their) = tokio::join!(
                send(&self.embedded, request, &ours.live, name),
                send(&self.real, request, &theirs.live, name),
            );
            let our = our.expect("the embedded server always answers");
            let Some(their) = their else {
                self.leniencies.count(Leniency::Unanswered);
                return None;
            };
            let (mut left, mut right) = (our.normalized(&ours), their.normalized(&theirs));
            if self.lenient && left["warnings"] != right["warnings"] {
                self.leniencies.count(Leniency::OtherWarnings);
                left["warnings"] = Value::Null;
                right["warnings"] = Value::Null;
            }
            let mut places = differences(&left, &right);
            if request.method != "GET" && is_written_once_more(&left, &right) {
                self.leniencies.count(Leniency::WrittenOnceMore);
                places.retain(|place| !place.starts_with(REVISION));
            }
            if ["webhookconfigurations", "networkpolicies"]
                .iter()
                .any(|it| request.target.contains(it))
            {
                // An empty list where there was none is a new generation of these, of ours not.
                let count = places.len();
                places.retain(|place| !place.starts_with("/body/metadata/generation"));
                if places.len() < count {
                    self.leniencies.count(Leniency::OtherGeneration);
                }
            }
            if their.is_defect() && self.lenient {
                if our.code == their.code {
                    if !places.is_empty() {
                        self.leniencies.count(Leniency::OtherMessage);
                    }
                    continue;
                }
                self.leniencies.count(Leniency::OtherCode);
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
