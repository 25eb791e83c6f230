//! What a collector gets to see of an installation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use k8s_testkit::ClusterKind;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use plimsoll_cli::traces::Traces;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::harness::{Harness, sample_payloads};

/// What a collector was sent: the path and the body of each request.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that takes everything.
async fn collector() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let received = Received::default();
    let kept = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection, Arc::clone(&kept)));
        }
    });
    (format!("http://{address}"), received)
}

/// Answers the requests of a connection.
async fn answer(mut connection: TcpStream, received: Received) {
    let mut bytes = Vec::new();
    while connection.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
        while let Some((path, body, rest)) = request(&bytes) {
            bytes = rest;
            received.lock().expect("no thread panics").push((path, body));
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            if connection.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}

/// The first whole request of some bytes: its path, its body, and what follows it.
fn request(bytes: &[u8]) -> Option<(String, Vec<u8>, Vec<u8>)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    let body_end = end + length.trim().parse::<usize>().ok()?;
    let body = bytes.get(end..body_end)?.to_vec();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    Some((path, body, bytes[body_end..].to_vec()))
}

fn text(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|it| it.value.as_ref()).and_then(|it| it.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

#[test]
fn a_collector_sees_the_release_its_run_levels_and_each_step() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let spans: Vec<Span> = runtime.block_on(async {
        let (endpoint, received) = collector().await;
        let (traces, layer) = Traces::start(&endpoint, "this one").expect("traces begin");
        // With one subscriber alone, what other tests do first on their threads would decide that
        // no subscriber listens.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        // All tasks of this runtime are on this thread.
        let listening =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        let (release, _) = sample_payloads();
        let mut harness = Harness::installed(ClusterKind::Embedded, &[release]).await;
        harness.stop().await;
        drop(listening);
        traces.end().await;
        let received = received.lock().expect("no thread panics");
        assert!(!received.is_empty(), "something is sent");
        let requests = received.iter().map(|(path, body)| {
            assert_eq!(path, "/v1/traces");
            ExportTraceServiceRequest::decode(body.as_slice()).expect("it is OTLP")
        });
        let scopes = requests.flat_map(|it| it.resource_spans).flat_map(|it| it.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    });
    let by_id: BTreeMap<&[u8], &Span> =
        spans.iter().map(|span| (span.span_id.as_slice(), span)).collect();
    let parent = |span: &Span| by_id.get(span.parent_span_id.as_slice()).copied();
    let step = spans
        .iter()
        .find(|span| span.name == "step" && text(span, "object") == "namespace \"harbour-crane\"")
        .expect("a step");
    assert_eq!(text(step, "outcome"), "success");
    let level = parent(step).expect("it has a run level");
    assert_eq!((level.name.as_str(), text(level, "level").as_str()), ("run level", "30"));
    let release = parent(level).expect("it has a release");
    assert_eq!((release.name.as_str(), text(release, "version").as_str()), ("release", "1.0.0"));
    assert!(parent(release).is_none());
    for name in ["plan", "write status"] {
        assert!(spans.iter().any(|span| span.name == name), "{name}");
    }
}
