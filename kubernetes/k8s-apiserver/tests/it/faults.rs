//! Faults on demand, in front of the server in process.
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_apiserver::ApiServer;
use k8s_apiserver::faults::{AsOf, Fault, Faults, Faulty, FaultyBody, Refusal, Requests};
use serde_json::Value;
use tokio::time::Instant;
use tower::{BoxError, Layer as _, Service as _};

use crate::cluster::TestCluster;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server whose clients have a bad day.
struct Rig {
    cluster: TestCluster,
    faults: Faults,
    service: Faulty<ApiServer>,
}

impl Rig {
    fn new() -> Self {
        let cluster = TestCluster::new();
        let faults = Faults::none();
        let service = faults.layer(cluster.server.clone());
        Self { cluster, faults, service }
    }

    async fn open(&self, line: &str, body: &str) -> Result<Response<FaultyBody>, BoxError> {
        let (method, path) = line.split_once(' ').unwrap();
        let body = Full::new(bytes::Bytes::copy_from_slice(body.as_bytes()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", "tester/1.0")
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        self.service.clone().call(request).await
    }

    /// The status and body of an answer; none if the connection fails.
    async fn send(&self, line: &str, body: &str) -> Option<(u16, Value)> {
        let response = self.open(line, body).await.ok()?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Some((code, serde_json::from_slice(&bytes).unwrap()))
    }

    async fn code(&self, line: &str) -> u16 {
        self.send(line, "").await.map_or(0, |(code, _)| code)
    }

    fn create(&self, name: &str) {
        let body = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
        self.cluster.check(&format!("POST {CONFIG_MAPS}"), &body, 201, "");
    }

    /// Types and names of the events of a watch until it ends, and whether it ended cleanly.
    async fn events(&self, query: &str) -> (Vec<String>, bool) {
        let line = format!("GET {CONFIG_MAPS}?watch=true&{query}");
        let mut body = self.open(&line, "").await.unwrap().into_body();
        let (mut text, mut cleanly) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => text.extend_from_slice(&frame.into_data().unwrap()),
                Err(_) => cleanly = false,
            }
        }
        let events = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let shown = events.map(|line| {
            let event: Value = serde_json::from_slice(line).unwrap();
            let object = &event["object"];
            let what = object["metadata"]["name"].as_str().or(object["reason"].as_str());
            format!("{} {}", event["type"].as_str().unwrap(), what.unwrap_or("-"))
        });
        (shown.collect(), cleanly)
    }
}

#[tokio::test(start_paused = true)]
async fn rules_choose_by_every_part_of_a_request() {
    let get = format!("GET {CONFIG_MAPS}/kube-root-ca.crt");
    let list = format!("GET {CONFIG_MAPS}");
    let cases = [
        (Requests::any(), [500, 500]),
        (Requests::any().verb("get"), [500, 200]),
        (Requests::any().verb("list"), [200, 500]),
        (Requests::any().resource("configmaps"), [500, 500]),
        (Requests::any().resource("configmaps.apps"), [200, 200]),
        (Requests::any().resource("configmaps/status"), [200, 200]),
        (Requests::any().namespace("default"), [500, 500]),
        (Requests::any().namespace("kube-system"), [200, 200]),
        (Requests::any().name("kube-root-ca.crt"), [500, 200]),
        (Requests::any().user_agent("tester"), [500, 500]),
        (Requests::any().user_agent("kubectl"), [200, 200]),
        (Requests::any().containing("/kube-root"), [500, 200]),
        (Requests::any().verb("get").name("other"), [200, 200]),
    ];
    for (requests, expected) in cases {
        let rig = Rig::new();
        rig.faults.add(requests.clone().always(), Fault::refused(500));
        let found = [rig.code(&get).await, rig.code(&list).await];
        assert_eq!(found, expected, "{requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rules_choose_by_order_and_chance() {
    let cases = [
        (Requests::any(), "x...."),
        (Requests::any().skip(2), "..x.."),
        (Requests::any().times(3), "xxx.."),
        (Requests::any().skip(1).times(2), ".xx.."),
        (Requests::any().always(), "xxxxx"),
        (Requests::any().share(7, 1.0), "xxxxx"),
        (Requests::any().share(7, 0.0), "....."),
    ];
    for (requests, expected) in cases {
        let rig = Rig::new();
        rig.faults.add(requests.clone(), Fault::refused(503));
        let mut found = String::new();
        for _ in 0..5 {
            found.push(if rig.code("GET /api/v1/pods").await == 503 { 'x' } else { '.' });
        }
        assert_eq!(found, expected, "{requests:?}");
        assert_eq!(rig.faults.fired().len(), expected.matches('x').count());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_has_the_configured_status() {
    let rig = Rig::new();
    rig.faults.add("GET", Fault::refused(429));
    let response = rig.open("GET /api/v1/pods", "").await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    let refusal = Refusal::new(403).reason("Special").message("not today").retry_after(9);
    rig.faults.add("GET", Fault::Refused(refusal));
    let (code, status) = rig.send("GET /api/v1/pods", "").await.unwrap();
    assert_eq!(code, 403);
    let expected = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
        "reason": "Special", "message": "not today", "details": {"retryAfterSeconds": 9},
    });
    assert_eq!(status, expected);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_of_a_write_that_happened_and_a_lost_connection_of_none() {
    let rig = Rig::new();
    let create = format!("POST {CONFIG_MAPS}");
    for (fault, name, happened) in
        [(Fault::AnswerLost, "a", true), (Fault::ConnectionLost, "b", false)]
    {
        rig.faults.add(Requests::any().verb("create"), fault);
        let body = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
        assert!(rig.send(&create, &body).await.is_none());
        let found = rig.code(&format!("GET {CONFIG_MAPS}/{name}")).await;
        assert_eq!(found == 200, happened, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_of_a_write_that_happened() {
    let rig = Rig::new();
    let create = format!("POST {CONFIG_MAPS}");
    for (fault, name, is_lost) in
        [(Fault::AnswerTruncated, "a", true), (Fault::AnswerCorrupted, "b", false)]
    {
        rig.faults.add(Requests::any().verb("create"), fault);
        let body = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
        let response = rig.open(&create, &body).await.unwrap();
        assert_eq!(response.status(), 201);
        let body = response.into_body().collect().await;
        assert_eq!(body.is_err(), is_lost, "{name}");
        if let Ok(body) = body {
            assert!(serde_json::from_slice::<Value>(&body.to_bytes()).is_err());
        }
        assert_eq!(rig.code(&format!("GET {CONFIG_MAPS}/{name}")).await, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_takes_its_time_on_a_paused_clock() {
    let rig = Rig::new();
    rig.faults.add("GET", Fault::Delayed(Duration::from_secs(3_600)));
    let began = Instant::now();
    assert_eq!(rig.code("GET /api/v1/pods").await, 200);
    assert_eq!(began.elapsed(), Duration::from_secs(3_600));
}

#[tokio::test(start_paused = true)]
async fn stale_reads_answer_as_of_an_earlier_state() {
    let rig = Rig::new();
    rig.create("a");
    let then = rig.cluster.server.resource_version();
    rig.create("b");
    let now = rig.cluster.server.resource_version();
    let get = format!("GET {CONFIG_MAPS}/b");
    let list = format!("GET {CONFIG_MAPS}?limit=500");
    for as_of in [AsOf::Revision(then), AsOf::Behind(now - then)] {
        rig.faults.add(Requests::any().times(2), Fault::Stale(as_of));
        assert_eq!(rig.code(&get).await, 404);
        let (_, listed) = rig.send(&list, "").await.unwrap();
        assert_eq!(listed["metadata"]["resourceVersion"], then.to_string());
        assert_eq!(listed["items"].as_array().unwrap().len(), 2);
        assert_eq!(rig.code(&get).await, 200);
    }
    // What the client asks for is not undercut.
    rig.faults.add(Requests::any(), Fault::Stale(AsOf::Revision(1)));
    let (_, listed) = rig.send(&format!("{list}&resourceVersion={now}"), "").await.unwrap();
    assert_eq!(listed["metadata"]["resourceVersion"], now.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_compaction_expires_versions_and_tokens() {
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.create(name);
    }
    let then = rig.cluster.server.resource_version();
    let (_, page) = rig.send(&format!("GET {CONFIG_MAPS}?limit=2"), "").await.unwrap();
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    rig.create("d");
    rig.faults.add(Requests::any(), Fault::Compacted);
    let next = |token: &str| format!("GET {CONFIG_MAPS}?limit=2&continue={token}");
    let (code, status) = rig.send(&next(&token), "").await.unwrap();
    assert_eq!((code, status["reason"].as_str()), (410, Some("Expired")));
    assert!(
        status["message"].as_str().unwrap().contains("use the continue token in this response")
    );
    let token = status["metadata"]["continue"].as_str().unwrap().to_owned();
    let (code, page) = rig.send(&next(&token), "").await.unwrap();
    assert_eq!(code, 200);
    let names: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["c", "d"]);
    let (events, _) = rig.events(&format!("resourceVersion={}", then - 1)).await;
    assert_eq!(events, ["ERROR Expired"]);
    let exact = format!("GET {CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    assert_eq!(rig.code(&exact).await, 410);
}

#[tokio::test(start_paused = true)]
async fn watches_end_and_repeat_as_scripted() {
    let second = Duration::from_secs(1);
    let cases = [
        (Fault::WatchClosed(second), vec!["ADDED kube-root-ca.crt"], true),
        (Fault::WatchBroken(second), vec!["ADDED kube-root-ca.crt"], false),
        (Fault::WatchExpired(second), vec!["ERROR Expired"], true),
        (Fault::WatchDuplicated, vec!["ADDED kube-root-ca.crt", "ADDED kube-root-ca.crt"], true),
    ];
    for (fault, expected, cleanly) in cases {
        let rig = Rig::new();
        rig.faults.add("watch=true", fault.clone());
        let began = Instant::now();
        let (events, ended_cleanly) = rig.events("timeoutSeconds=5").await;
        assert_eq!(
            (events, ended_cleanly),
            (expected.iter().map(ToString::to_string).collect(), cleanly),
            "{fault:?}"
        );
        let life = if fault == Fault::WatchDuplicated { 5 * second } else { second };
        assert_eq!(began.elapsed(), life);
    }
}

#[tokio::test(start_paused = true)]
async fn after_stop_nothing_goes_wrong() {
    let rig = Rig::new();
    rig.faults.add(Requests::any().always(), Fault::refused(500));
    rig.faults.stop();
    assert_eq!(rig.code("GET /api/v1/pods").await, 200);
    let stormy = Faults::seeded(1, 1.0);
    stormy.stop();
    let service = stormy.layer(rig.cluster.server.clone());
    let request = Request::get("/api").body(Full::new(bytes::Bytes::new())).unwrap();
    assert_eq!(service.clone().call(request).await.unwrap().status(), 200);
    assert!(stormy.fired().is_empty());
}
