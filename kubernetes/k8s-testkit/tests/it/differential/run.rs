//! Sending a sequence to both servers.
use std::sync::Arc;

use http::header::{CONTENT_TYPE, USER_AGENT, WARNING};
use http_body_util::BodyExt;
use k8s_testkit::poll;
use kube::Client;
use serde_json::Value;

use super::answer::{Answer, Memory, differences};
use super::leniencies::{Leniencies, Leniency};
use super::request::{Body, Request};

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

/// What became of one attempt at a sequence.
#[derive(Debug, Default)]
struct Attempt {
    difference: Option<Difference>,
    /// The request that the real server gave no answer to, which ended the attempt.
    unanswered: Option<usize>,
    /// What was tolerated.
    tolerated: Vec<Leniency>,
}

/// What of a write the cache of a real server may not have seen yet.
#[derive(Clone, Copy, Debug)]
enum Unseen<'a> {
    /// The object with this resource version.
    Revision(&'a str),
    /// The end of the object, which no answer tells the resource version of.
    End,
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

/// Waits until the cache of a real server has the object as the last write left it. An update is tried
/// on the cached object first, and an older one adds the warnings that it would have caused.
///
/// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: GuaranteedUpdate
async fn wait_for_cache(client: &Client, path: &str, unseen: Unseen<'_>) {
    let (collection, name) = path.rsplit_once('/').expect("an object lies in a collection");
    let list = format!("{collection}?fieldSelector=metadata.name%3D{name}");
    let target = match unseen {
        Unseen::Revision(revision) => format!("{path}?resourceVersion={revision}"),
        Unseen::End => {
            // A list without a version is as new as all writes before it, and tells its version.
            let newest = poll("a list", || settled(client, &list)).await.expect("it is answered");
            let Some(revision) = newest.body["metadata"]["resourceVersion"].as_str() else {
                return;
            };
            format!("{list}&resourceVersion={revision}")
        }
    };
    // Whatever the answer is, it comes once the cache is as new as the revision.
    poll("the cache", || settled(client, &target)).await.expect("it follows");
}

/// Reads a path; there is no answer where the server is too slow, or its cache too old.
async fn settled(client: &Client, target: &str) -> Option<Answer> {
    let request =
        Request { method: "GET", target: target.to_owned(), content_type: "", body: Body::Nothing };
    let answer = send(client, &request, &Value::Null, "").await?;
    (!matches!(answer.code, 429 | 503 | 504)).then_some(answer)
}

/// Whether a write may have ended the object: it deletes it, or changes one that is being deleted.
fn may_end(request: &Request, answer: &Answer) -> bool {
    let is_ending = answer.body["metadata"].get("deletionTimestamp").is_some();
    let is_write = request.method != "GET" && !request.target.contains("dryRun=All");
    is_write && answer.code < 300 && (request.method == "DELETE" || is_ending)
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
    ///
    /// A sequence that the real server stops answering is sent again, with another object, until it
    /// ends at the same request twice: a handler that panics does so each time, unlike a connection
    /// that is lost.
    pub(super) async fn run(&self, requests: &[Request], name: &str) -> Option<Difference> {
        let mut attempt = self.attempt(requests, name).await;
        let mut repetition = 0;
        while attempt.unanswered.is_some() {
            repetition += 1;
            let before = attempt.unanswered;
            attempt = self.attempt(requests, &format!("{name}-r{repetition}")).await;
            if attempt.unanswered == before {
                break;
            }
        }
        for leniency in attempt.tolerated {
            self.leniencies.count(leniency);
        }
        attempt.difference
    }

    /// Sends a sequence to both servers, up to the first difference.
    async fn attempt(&self, requests: &[Request], name: &str) -> Attempt {
        let (mut ours, mut theirs) = (Memory::default(), Memory::default());
        let mut may_have_ended = false;
        let mut attempt = Attempt::default();
        for (index, request) in requests.iter().enumerate() {
            if let Some((before, _)) = request.target.split_once("{name}") {
                let path = format!("{before}{name}");
                let revision = theirs.live["metadata"]["resourceVersion"].as_str();
                if may_have_ended {
                    wait_for_cache(&self.real, &path, Unseen::End).await;
                    may_have_ended = false;
                } else if let Some(revision) = revision {
                    wait_for_cache(&self.real, &path, Unseen::Revision(revision)).await;
                }
            }
            let (our, their) = tokio::join!(
                send(&self.embedded, request, &ours.live, name),
                send(&self.real, request, &theirs.live, name),
            );
            let our = our.expect("the embedded server always answers");
            let Some(their) = their else {
                attempt.unanswered = Some(index);
                attempt.tolerated.push(Leniency::Unanswered);
                return attempt;
            };
            may_have_ended |= may_end(request, &their);
            let (left, right) = (our.normalized(&ours), their.normalized(&theirs));
            let places = self.places(request, left, right, &mut attempt.tolerated);
            if their.is_defect() && self.lenient {
                if our.code == their.code {
                    if !places.is_empty() {
                        attempt.tolerated.push(Leniency::OtherMessage);
                    }
                    continue;
                }
                attempt.tolerated.push(Leniency::OtherCode);
                return attempt;
            }
            if !places.is_empty() {
                attempt.difference = Some(Difference { index, places });
                return attempt;
            }
            if our.is_object() && !request.target.contains("dryRun=All") {
                (ours.live, theirs.live) = (our.body, their.body);
            }
        }
        attempt
    }

    /// The places where two answers differ, without what is tolerated.
    fn places(
        &self,
        request: &Request,
        mut left: Value,
        mut right: Value,
        tolerated: &mut Vec<Leniency>,
    ) -> Vec<String> {
        if self.lenient && left["warnings"] != right["warnings"] {
            tolerated.push(Leniency::OtherWarnings);
            left["warnings"] = Value::Null;
            right["warnings"] = Value::Null;
        }
        let mut places = differences(&left, &right);
        if request.method != "GET" && is_written_once_more(&left, &right) {
            tolerated.push(Leniency::WrittenOnceMore);
            places.retain(|place| !place.starts_with(REVISION));
        }
        if ["webhookconfigurations", "networkpolicies"].iter().any(|it| request.target.contains(it))
        {
            // An empty list where there was none is a new generation of these, of ours not.
            let count = places.len();
            places.retain(|place| !place.starts_with("/body/metadata/generation"));
            if places.len() < count {
                tolerated.push(Leniency::OtherGeneration);
            }
        }
        places
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
