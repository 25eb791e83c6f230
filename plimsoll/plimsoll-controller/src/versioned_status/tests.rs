//! Writes after another client has written.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use plimsoll_api::CLUSTER_VERSION;
use serde_json::json;

use super::*;

/// A server with one object.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

struct State {
    revision: u64,
    spec: &'static str,
    status: Value,
    /// The next write is carried out, and its answer lost.
    loses_answer: bool,
}

impl State {
    fn object(&self) -> Value {
        json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": { "name": "version", "resourceVersion": self.revision.to_string() },
            "spec": self.spec,
            "status": self.status,
        })
    }

    fn answer(&mut self, method: &Method, body: &[u8]) -> (u16, Value) {
        if method == Method::GET {
            return (200, self.object());
        }
        let patch: Value = serde_json::from_slice(body).unwrap();
        let failure = |code: u16, reason: &str| {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "message": reason, "reason": reason, "code": code });
            (code, status)
        };
        let revision = self.revision.to_string();
        if patch[0]["value"].as_str() != Some(&revision) {
            return failure(409, "Conflict");
        }
        self.revision += 1;
        self.status = patch[1]["value"].clone();
        if std::mem::take(&mut self.loses_answer) {
            return failure(500, "InternalError");
        }
        (200, self.object())
    }
}

impl Server {
    fn client(&self) -> Client {
        let state = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let state = Arc::clone(&state);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let (code, value) = state.lock().unwrap().answer(&parts.method, &body);
                let answer = Response::builder().status(code);
                Ok::<_, std::convert::Infallible>(
                    answer.body(Full::new(Bytes::from(value.to_string()))).unwrap(),
                )
            }
        });
        Client::new(service, "default")
    }

    /// Reads, then does what each word says, `write` being ours; gives how each of those went and
    /// what is there in the end.
    async fn play(words: &str) -> String {
        let server = Self(Arc::new(Mutex::new(State {
            revision: 7,
            spec: "asked",
            status: json!("first"),
            loses_answer: false,
        })));
        let client = server.client();
        let object = serde_json::from_value(server.0.lock().unwrap().object()).unwrap();
        let mut guarded = VersionedStatus::of(&object);
        let mut reported = Vec::new();
        for word in words.split_whitespace() {
            if word == "write" {
                let status = json!(format!("ours {}", reported.len()));
                reported.push(match guarded.replace(&client, CLUSTER_VERSION, &status).await {
                    Ok(()) => "written".to_owned(),
                    Err(StatusWriteError::Outdated) => "outdated".to_owned(),
                    Err(StatusWriteError::Missing) => "missing".to_owned(),
                    Err(StatusWriteError::Failed(_)) => "failed".to_owned(),
                });
                continue;
            }
            let mut state = server.0.lock().unwrap();
            match word {
                "spec" => (state.revision, state.spec) = (state.revision + 1, "changed"),
                "status" => (state.revision, state.status) = (state.revision + 1, json!("theirs")),
                "restore" => (state.revision, state.status) = (3, json!("of the backup")),
                "lose" => state.loses_answer = true,
                other => panic!("unknown word {other:?}"),
            }
        }
        let status = server.0.lock().unwrap().status.clone();
        format!("{}: {}", reported.join(", "), status.as_str().unwrap())
    }
}

#[tokio::test]
async fn the_first_write_overwrites_nothing_that_was_not_read() {
    for (words, expected) in [
        ("write", "written: ours 0"),
        ("write write", "written, written: ours 1"),
        ("spec write", "written: ours 0"),
        ("status write", "outdated: theirs"),
        ("status spec write write", "outdated, outdated: theirs"),
        ("write spec write", "written, written: ours 1"),
        // Whoever leads tells how it stands.
        ("write status write", "written, written: ours 1"),
        // A server that was restored from a backup knows nothing of what this process did.
        ("write restore write", "written, outdated: of the backup"),
        // What may have been ours is ours.
        ("lose write write", "failed, written: ours 1"),
        ("lose write status write", "failed, outdated: theirs"),
    ] {
        assert_eq!(Server::play(words).await, expected, "{words}");
    }
}
