//! Who may do what: identities, roles, tokens, TLS, audit.
//!
//! What the real server answers is compared in the testkit; here is what needs a clock, a socket or
//! options of its own.
mod audit;
mod identity;
mod roles;
mod tls;
mod tokens;

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use k8s_apiserver::{AccessOptions, ApiServer, Clock, Options, UserInfo};
use serde_json::Value;
use tower::Service as _;

/// A clock that begins at the start of 2026 and is moved by hand.
#[derive(Clone)]
struct HandClock(Arc<Mutex<jiff::Timestamp>>);

impl Clock for HandClock {
    fn now(&self) -> jiff::Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A server under test.
struct Subject {
    server: ApiServer,
    clock: HandClock,
}

impl Subject {
    fn new(access: AccessOptions) -> Self {
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = HandClock(Arc::new(Mutex::new(start)));
        let server = ApiServer::new(Options {
            clock: Arc::new(clock.clone()),
            seed: 1,
            access,
            ..Options::default()
        });
        Self { server, clock }
    }

    fn advance(&self, seconds: i64) {
        *self.clock.0.lock().unwrap() += jiff::SignedDuration::from_secs(seconds);
    }

    /// Sends a request. `who` is no user (empty), a user (`bob` or `bob,group`), a bearer token
    /// (`token:...`), or a user that the administrator acts as (`as:bob,group`).
    fn ask(&self, who: &str, line: &str, body: &str) -> (u16, Value) {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(
                "content-type",
                if method == "PATCH" { "application/merge-patch+json" } else { "application/json" },
            )
            .header("user-agent", "test/1");
        if let Some(token) = who.strip_prefix("token:") {
            request = request.header("authorization", format!("Bearer {token}"));
        } else if let Some(names) = who.strip_prefix("as:") {
            let mut names = names.split(',');
            request = request.header("impersonate-user", names.next().unwrap_or_default());
            for group in names {
                request = request.header("impersonate-group", group);
            }
        } else if !who.is_empty() {
            let mut names = who.split(',');
            let name = names.next().unwrap_or_default();
            request = request.extension(UserInfo::new(name, names.chain(["system:authenticated"])));
        }
        let body = Full::new(bytes::Bytes::copy_from_slice(body.as_bytes()));
        let mut server = self.server.clone();
        let response = server
            .call(request.body(body).unwrap())
            .now_or_never()
            .expect("the server answers without waiting")
            .unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::String(text)))
    }

    /// Sends a request, and checks the status and a part of the answer's text.
    #[track_caller]
    fn check(&self, who: &str, line: &str, body: &str, status: u16, part: &str) -> Value {
        let (found, answer) = self.ask(who, line, body);
        let message = answer["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
        assert_eq!(found, status, "{who} {line}: {answer:#}");
        assert!(message.contains(part), "{who} {line}: {message}\nhas no\n{part}");
        answer
    }
}
