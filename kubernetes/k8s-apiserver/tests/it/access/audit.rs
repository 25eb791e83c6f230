//! What is recorded of requests.
use std::sync::{Arc, Mutex};

use k8s_apiserver::{
    AccessOptions, Audit, AuditGroup, AuditLevel, AuditPolicy, AuditRule, AuditSink, AuditStage,
    JsonLines,
};
use serde_json::Value;

use super::Subject;

#[derive(Default)]
struct Events(Mutex<Vec<Value>>);

impl AuditSink for Events {
    fn record(&self, event: &Value) {
        self.0.lock().unwrap().push(event.clone());
    }
}

fn subject(policy: AuditPolicy) -> (Subject, Arc<Events>) {
    let sink = Arc::new(Events::default());
    let audit = Audit { policy, sink: Arc::clone(&sink) as Arc<dyn AuditSink> };
    (Subject::new(AccessOptions { audit: Some(audit), ..AccessOptions::default() }), sink)
}

/// The events so far, each in a line.
fn lines(events: &Events) -> Vec<String> {
    let events = std::mem::take(&mut *events.0.lock().unwrap());
    let show = |event: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {} as {} {} {} request {} response {}",
            text(&event["stage"]),
            text(&event["verb"]),
            text(&event["objectRef"]["resource"]),
            text(&event["user"]["username"]),
            text(&event["impersonatedUser"]["username"]),
            event["responseStatus"]["code"],
            text(&event["annotations"]["authorization.k8s.io/decision"]),
            text(&event["requestObject"]["metadata"]["name"]),
            text(&event["responseObject"]["kind"]),
        )
    };
    events.iter().map(show).collect()
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn each_level_records_what_it_says() {
    let body = r#"{"metadata": {"name": "a"}}"#;
    for (level, request, response) in [
        (AuditLevel::Metadata, "-", "-"),
        (AuditLevel::Request, "a", "-"),
        (AuditLevel::RequestResponse, "a", "ConfigMap"),
    ] {
        let (subject, events) = subject(AuditPolicy::everything(level));
        subject.check("", &format!("POST {MAPS}"), body, 201, "");
        assert_eq!(
            lines(&events),
            [
                "RequestReceived create configmaps system:admin as - null - request - response -"
                    .to_owned(),
                format!(
                    "ResponseComplete create configmaps system:admin as - 201 allow request {request} response {response}"
                ),
            ]
        );
    }
    let (subject, events) = subject(AuditPolicy::everything(AuditLevel::None));
    subject.check("", &format!("GET {MAPS}"), "", 200, "");
    assert!(lines(&events).is_empty());
}

#[test]
fn refusals_impersonation_and_watches_are_recorded() {
    let policy = AuditPolicy {
        omit_stages: vec![AuditStage::RequestReceived],
        ..AuditPolicy::everything(AuditLevel::Metadata)
    };
    let (subject, events) = subject(policy);
    subject.check("bob", &format!("GET {MAPS}"), "", 403, "");
    subject.check("as:bob", &format!("GET {MAPS}/x"), "", 403, "");
    assert_eq!(
        lines(&events),
        [
            "ResponseComplete list configmaps bob as - 403 forbid request - response -",
            "ResponseComplete get configmaps system:admin as bob 403 forbid request - response -",
        ]
    );
    let unknown = http::Request::get(format!("{MAPS}/x")).header("authorization", "Bearer wrong");
    let unknown = unknown.body(String::new()).unwrap();
    let mut server = subject.server.clone();
    let refused = futures::FutureExt::now_or_never(tower::Service::call(&mut server, unknown));
    assert_eq!(refused.unwrap().unwrap().status(), 401);
    assert_eq!(
        lines(&events),
        ["ResponseStarted get configmaps - as - 401 - request - response -"]
    );
    let watch = http::Request::get(format!("{MAPS}?watch=1")).body(String::new()).unwrap();
    let mut server = subject.server.clone();
    let response = futures::FutureExt::now_or_never(tower::Service::call(&mut server, watch));
    let begun =
        ["ResponseStarted watch configmaps system:admin as - 200 allow request - response -"];
    assert_eq!(lines(&events), begun);
    drop(response);
    let ended =
        ["ResponseComplete watch configmaps system:admin as - 200 allow request - response -"];
    assert_eq!(lines(&events), ended);
}

#[test]
fn the_first_rule_that_matches_counts() {
    let rule = AuditRule::default;
    let group = |resources: &[&str]| AuditGroup {
        resources: resources.iter().map(|text| (*text).to_owned()).collect(),
        ..AuditGroup::default()
    };
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let policy = AuditPolicy {
        rules: vec![
            AuditRule { users: texts(&["quiet"]), ..rule() },
            AuditRule { resources: vec![group(&["secrets"])], ..rule() },
            AuditRule {
                verbs: texts(&["list"]),
                namespaces: texts(&["default"]),
                level: AuditLevel::Metadata,
                ..rule()
            },
            AuditRule {
                non_resource_urls: texts(&["/version*"]),
                level: AuditLevel::Metadata,
                ..rule()
            },
            AuditRule { user_groups: texts(&["loud"]), level: AuditLevel::Metadata, ..rule() },
        ],
        omit_stages: vec![AuditStage::RequestReceived],
    };
    let (subject, events) = subject(policy);
    for (who, line, recorded) in [
        ("", "GET /api/v1/namespaces/default/pods", 1),
        ("quiet", "GET /api/v1/namespaces/default/pods", 0),
        ("", "GET /api/v1/namespaces/default/secrets", 0),
        ("", "GET /api/v1/namespaces/kube-system/pods", 0),
        ("", "GET /version", 1),
        ("", "GET /healthz", 0),
        ("bob,loud", "GET /healthz", 1),
    ] {
        subject.ask(who, line, "");
        assert_eq!(lines(&events).len(), recorded, "{who} {line}");
    }
}

#[test]
fn a_policy_is_read_and_lines_are_written() {
    let policy: AuditPolicy = serde_json::from_str(
        r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["pods"]}], "nonResourceURLs": []}]}"#,
    )
    .unwrap();
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let out = Shared::default();
    let audit = Audit { policy, sink: JsonLines::new(out.clone()) };
    let subject = Subject::new(AccessOptions { audit: Some(audit), ..AccessOptions::default() });
    subject.ask("", "GET /api/v1/pods", "");
    subject.ask("", "GET /api/v1/nodes", "");
    let written = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    let events: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 1, "{written}");
    assert_eq!(events[0]["requestReceivedTimestamp"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(events[0]["apiVersion"], "audit.k8s.io/v1");
}
