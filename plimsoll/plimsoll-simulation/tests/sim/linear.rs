//! The embedded server's history is linearizable: threads that read and write the same objects at the
//! same time see one order of writes, which is that of the revisions and respects who ended before
//! whom began.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::BodyExt as _;
use k8s_apiserver::{ApiServer, Options};
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service as _;

const THREADS: u64 = 4;
const OPERATIONS: u64 = 60;
const OBJECTS: u64 = 3;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// A request that succeeded.
#[derive(Debug)]
struct Operation {
    /// Moments of the order in which requests began and answers came.
    began: u64,
    ended: u64,
    object: u64,
    is_write: bool,
    /// The object as it was answered: its revision, and the value that the last write gave it.
    revision: u64,
    value: String,
}

/// Returns what contradicts one order of writes, in sentences.
fn contradictions(history: &[Operation]) -> Vec<String> {
    let mut found = Vec::new();
    let mut written: BTreeMap<u64, &Operation> = BTreeMap::new();
    for write in history.iter().filter(|it| it.is_write) {
        if let Some(other) = written.insert(write.revision, write) {
            found.push(format!("one revision of two writes: {write:?}, {other:?}"));
        }
    }
    for operation in history {
        let writer = written.get(&operation.revision);
        if writer.is_none_or(|it| it.object != operation.object || it.value != operation.value) {
            found.push(format!("what is answered was not written: {operation:?}"));
        }
        for later in history {
            let is_later = operation.object == later.object && operation.ended < later.began;
            let is_newer = match later.is_write {
                true => later.revision > operation.revision,
                false => later.revision >= operation.revision,
            };
            if is_later && !is_newer {
                found.push(format!("an earlier state after a later one: {operation:?}, {later:?}"));
            }
        }
    }
    found
}

async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> Option<Value> {
    let request = http::Request::builder().method(method).uri(path);
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = request.header("content-type", kind);
    let body = match method {
        "GET" => Body::empty(),
        _ => Body::from(body.to_string().into_bytes()),
    };
    let request = request.body(body).expect("it is a request");
    let answer = server.clone().call(request).await.expect("the server answers");
    let is_success = answer.status().is_success();
    let body = answer.into_body().collect().await.expect("the answer ends").to_bytes();
    is_success.then(|| serde_json::from_slice(&body).expect("it is JSON"))
}

/// The operations of one thread; some writes name the revision that they replace, and may fail.
async fn operations(server: &ApiServer, clock: &AtomicU64, thread: u64) -> Vec<Operation> {
    let mut random = fastrand::Rng::with_seed(thread);
    let mut history = Vec::new();
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    for number in 0..OPERATIONS {
        let object = random.u64(..OBJECTS);
        let path = format!("{PATH}/{object}");
        let mut patch = json!({ "data": { "value": format!("{thread}-{number}") } });
        let method = if random.bool() { "GET" } else { "PATCH" };
        if let Some(revision) = seen.get(&object).filter(|_| random.bool()) {
            patch["metadata"] = json!({ "resourceVersion": revision });
        }
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let answer = send(server, method, &path, &patch).await;
        let ended = clock.fetch_add(1, Ordering::SeqCst);
        let Some(answer) = answer else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let revision = text(&answer["metadata"]["resourceVersion"]);
        history.push(Operation {
            began,
            ended,
            object,
            is_write: method == "PATCH",
            revision: revision.parse().expect("revisions are numbers"),
            value: text(&answer["data"]["value"]),
        });
        seen.insert(object, revision);
    }
    history
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

#[test]
fn concurrent_reads_and_writes_have_one_order() {
    let server = ApiServer::new(Options::default());
    let clock = AtomicU64::new(0);
    let mut history = Vec::new();
    for object in 0..OBJECTS {
        let name = object.to_string();
        let value = json!({ "metadata": { "name": name }, "data": { "value": "first" } });
        let began = clock.fetch_add(2, Ordering::SeqCst);
        let created = block_on(send(&server, "POST", PATH, &value)).expect("it is created");
        let revision = created["metadata"]["resourceVersion"].as_str().expect("a revision");
        let revision = revision.parse().expect("revisions are numbers");
        let value = "first".to_owned();
        history.push(Operation {
            began,
            ended: began + 1,
            object,
            is_write: true,
            revision,
            value,
        });
    }
    std::thread::scope(|scope| {
        let (server, clock) = (&server, &clock);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || block_on(operations(server, clock, thread))))
            .collect();
        history.extend(threads.into_iter().flat_map(|it| it.join().expect("it ends")));
    });
    assert!(history.len() as u64 > OPERATIONS, "{}", history.len());
    assert_eq!(contradictions(&history), [] as [String; 0]);
    // Each kind of contradiction is found.
    let mut stale = history;
    let last = stale.iter().max_by_key(|it| it.ended).map(|it| (it.ended, it.object));
    let (ended, object) = last.expect("there are operations");
    let first = stale.iter().find(|it| it.object == object).map(|it| it.revision).expect("one");
    let operation = |revision, value: &str| Operation {
        began: ended + 1,
        ended: ended + 2,
        object,
        is_write: false,
        revision,
        value: value.to_owned(),
    };
    stale.push(operation(first, "first"));
    assert!(contradictions(&stale).iter().any(|text| text.starts_with("an earlier state")));
    stale.push(operation(first, "unknown"));
    assert!(contradictions(&stale).iter().any(|text| text.starts_with("what is answered was not")));
}
