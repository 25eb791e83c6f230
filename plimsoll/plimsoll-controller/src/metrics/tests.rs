//! The metrics of a view, and that they are served.

use std::sync::Arc;

use plimsoll_api::config::{ClusterOperatorStatus, ClusterVersionStatus};
use plimsoll_api::olm::action::{ActionState, PolicyDecision};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::*;
use plimsoll_plan::reconciler::counters::{Counters, StepCounts};

use crate::view::{MetricsSnapshot, OperatorsView, WaitingActions};

const AT: &str = "2026-01-01T00:00:00Z";

fn view() -> View {
    let status: ClusterVersionStatus = serde_json::from_value(json!({
        "desired": { "version": "1.2.0", "image": "b" },
        "history": [
            { "state": "Partial", "startedTime": AT, "completionTime": null, "version": "1.2.0",
              "image": "b", "verified": false },
            { "state": "Completed", "startedTime": AT, "completionTime": AT, "version": "1.1.0",
              "image": "a", "verified": false },
        ],
        "observedGeneration": 1, "versionHash": "x",
        "capabilities": { "enabledCapabilities": ["Console"],
                          "knownCapabilities": ["Build", "Console"] },
        "conditions": [
            { "type": "Available", "status": "True", "lastTransitionTime": AT },
            { "type": "Failing", "status": "True", "reason": "R", "lastTransitionTime": AT },
            { "type": "RetrievedUpdates", "status": "Unknown", "lastTransitionTime": AT },
        ],
        "availableUpdates": [{ "version": "1.3.0", "image": "c" }],
        "conditionalUpdates": [{ "release": { "version": "1.4.0", "image": "d" }, "conditions": [
            { "type": "Recommended", "status": "False", "reason": "Risky",
              "lastTransitionTime": AT }] }],
    }))
    .unwrap();
    let operator: ClusterOperatorStatus = serde_json::from_value(json!({
        "versions": [{ "name": "operator", "version": "1.1.0" }],
        "conditions": [{ "type": "Degraded", "status": "False", "lastTransitionTime": AT }],
    }))
    .unwrap();
    let counts = Counters {
        executions: [(("apply", "success"), 7)].into(),
        payload_errors: [("1.2.0".to_owned(), 2)].into(),
        operators: [("dns".to_owned(), operator)].into(),
        transitions: [(("dns".to_owned(), "Degraded".to_owned()), 3)].into(),
    };
    let implied = json!({ "capability": "Console", "version": "1.2.0", "file": "f", "document": 0,
                          "object": "o", "manifests": 1, "since": AT });
    let over = json!({ "group": "", "kind": "Pod", "namespace": "n", "name": "p",
                       "state": "Expired" });
    let metrics = MetricsSnapshot {
        status,
        created: Some(AT.parse().unwrap()),
        steps: StepCounts { done: 5, pending: 2, waiting: 1, failed: 1 },
        deletions_unfinished: 4,
        orphans: 6,
        overrides: vec![serde_json::from_value(over).unwrap()],
        drift_repairs: 8,
        counters: Arc::new(counts),
        ..MetricsSnapshot::default()
    };
    View {
        version: "1.2.0".to_owned(),
        done: 5,
        total: 9,
        implied: vec![serde_json::from_value(implied).unwrap()],
        metrics: Some(metrics),
        ..View::default()
    }
}

fn operators() -> OperatorsView {
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "message": "M", "lastTransitionTime": AT });
    let mut view = OperatorsView { is_leader: true, ..OperatorsView::default() };
    let lamp = json!({ "status": {
        "observedGeneration": 1,
        "bundle": { "name": "lamp.v1.0.0", "version": "1.0.0" },
        "conditions": [
            condition("Progressing", "False", "UnmetDependency"),
            condition("Installed", "True", "InstallationSucceeded"),
            condition("Available", "Unknown", "NotInstalled"),
        ],
    } });
    assert!(view.observed("lamp", Some(&lamp)));
    assert!(!view.observed("lamp", Some(&lamp)), "nothing changed");
    let kettle = json!({ "status": { "deletion": {
        "phase": "Operands", "startedTime": AT, "stuck": ["one", "two"],
    } } });
    view.observed("kettle", Some(&kettle));
    view.observed("plug", Some(&kettle));
    assert!(view.observed("plug", None));
    view.executions.insert(("apply", "blocked"), 4);
    view.drift_repairs = 6;
    view.actions.insert("Running", 2);
    let waiting = WaitingActions { count: 2, since: AT.parse().unwrap() };
    view.actions_waiting.insert("WaitingForAction", waiting);
    for (state, seconds) in
        [(ActionState::Failed, 70), (ActionState::Failed, 2), (ActionState::Cancelled, -1)]
    {
        let duration = jiff::SignedDuration::from_secs(seconds);
        // The one that is counted last ended before the one that is counted first.
        let at = AT.parse::<jiff::Timestamp>().unwrap() + duration;
        view.action_ended("operator-install".to_owned(), state, "PolicyDenied", duration, at);
    }
    let decision = PolicyDecision {
        policy: "dev".to_owned(),
        mode: "Enforce".to_owned(),
        rule: "packages".to_owned(),
        ..PolicyDecision::default()
    };
    view.policy_decided(&decision);
    view.policy_decided(&decision);
    view.policy_decided(&PolicyDecision { allowed: true, rule: String::new(), ..decision });
    view
}

#[test]
fn every_metric_is_exposed_under_its_name() {
    let text = text(Some(&view()), Some(&operators()));
    for line in [
        r#"cluster_version{from_version="1.1.0",image="b",type="updating",version="1.2.0"} 1767225600"#,
        r#"cluster_version{from_version="1.1.0",image="b",type="failure",version="1.2.0"} 1767225600"#,
        r#"cluster_version{from_version="",image="a",type="completed",version="1.1.0"} 1767225600"#,
        r#"cluster_version{from_version="",image="a",type="initial",version="1.1.0"} 1767225600"#,
        r#"cluster_version{from_version="1.1.0",image="b",type="cluster",version="1.2.0"} 1767225600"#,
        r#"cluster_version{from_version="1.1.0",image="b",type="current",version="1.2.0"} 0"#,
        r#"cluster_version_available_updates{channel="",upstream="<default>"} 1"#,
        r#"plimsoll_operators_leader 1"#,
        r#"plimsoll_operator_installed{name="lamp",version="1.0.0"} 1"#,
        r#"plimsoll_operator_installed{name="kettle",version=""} 0"#,
        r#"plimsoll_operator_conditions{condition="Progressing",name="lamp",reason="UnmetDependency"} 0"#,
        r#"plimsoll_operator_conditions{condition="Installed",name="lamp",reason="InstallationSucceeded"} 1"#,
        r#"plimsoll_operator_deletion_stuck_objects{name="kettle"} 2"#,
        r#"plimsoll_operator_writes_total{action="apply",result="blocked"} 4"#,
        r#"plimsoll_operator_drift_repairs_total 6"#,
        r#"plimsoll_actions{state="Running"} 2"#,
        r#"plimsoll_actions_waiting{reason="WaitingForAction"} 2"#,
        r#"plimsoll_action_waiting_since_seconds{reason="WaitingForAction"} 1767225600"#,
        r#"plimsoll_action_total{class="operator-install",reason="PolicyDenied",result="failed"} 2"#,
        r#"plimsoll_action_total{class="operator-install",reason="PolicyDenied",result="cancelled"} 1"#,
        r#"plimsoll_action_last_end_seconds{class="operator-install",reason="PolicyDenied",result="failed"} 1767225670"#,
        r#"plimsoll_action_last_end_seconds{class="operator-install",reason="PolicyDenied",result="cancelled"} 1767225599"#,
        r#"plimsoll_action_policy_decisions_total{decision="denied",mode="enforce",policy="dev",rule="packages"} 2"#,
        r#"plimsoll_action_policy_decisions_total{decision="allowed",mode="enforce",policy="dev",rule=""} 1"#,
        r#"plimsoll_action_duration_seconds_bucket{class="operator-install",le="1"} 1"#,
        r#"plimsoll_action_duration_seconds_bucket{class="operator-install",le="5"} 2"#,
        r#"plimsoll_action_duration_seconds_bucket{class="operator-install",le="300"} 3"#,
        r#"plimsoll_action_duration_seconds_bucket{class="operator-install",le="+Inf"} 3"#,
        r#"plimsoll_action_duration_seconds_sum{class="operator-install"} 72"#,
        r#"plimsoll_action_duration_seconds_count{class="operator-install"} 3"#,
        r#"cluster_version_capability{name="Build"} 0"#,
        r#"cluster_version_capability{name="Console"} 1"#,
        r#"cluster_version_payload{type="applied",version="1.2.0"} 5"#,
        r#"cluster_version_payload{type="pending",version="1.2.0"} 4"#,
        r#"cluster_operator_up{name="version",reason="",version="1.1.0"} 1"#,
        r#"cluster_operator_up{name="dns",reason="NoAvailableCondition",version="1.1.0"} 0"#,
        r#"cluster_operator_conditions{condition="Failing",name="version",reason="R"} 1"#,
        r#"cluster_operator_conditions{condition="Degraded",name="dns",reason=""} 0"#,
        r#"cluster_operator_condition_transitions{condition="Degraded",name="dns"} 3"#,
        r#"cluster_operator_payload_errors{version="1.2.0"} 2"#,
        r#"cluster_version_conditional_update_condition_seconds{condition="Recommended",reason="Risky",status="False",version="1.4.0"} 1767225600"#,
        r#"plimsoll_leader 1"#,
        r#"plimsoll_steps{state="failed"} 1"#,
        r#"plimsoll_deletions_unfinished 4"#,
        r#"plimsoll_orphans 6"#,
        r#"plimsoll_overrides{state="expired"} 1"#,
        r#"plimsoll_overrides{state="in_force"} 0"#,
        r#"plimsoll_drift_repairs_total 8"#,
        r#"plimsoll_capability_implied{name="Console",version="1.2.0"} 1"#,
        r#"plimsoll_writes_total{action="apply",result="success"} 7"#,
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
    }
    // What is unknown is not exposed.
    assert!(!text.contains("\"RetrievedUpdates\""), "{text}");
    let mut reported: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    reported.sort_unstable();
    let mut names = NAMES;
    names.sort_unstable();
    assert_eq!(reported, names);
}

#[test]
fn who_stands_by_tells_so_and_nothing_more() {
    let check = |release: Option<&View>, operators: Option<&OperatorsView>, expected: &[&str]| {
        let text = text(release, operators);
        let reported: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(reported, expected);
    };
    let (release, operators) = (View::default(), OperatorsView::default());
    check(Some(&release), None, &["plimsoll_leader 0"]);
    // Without a release its controllers have no leader, and there is nothing to raise an alert about.
    check(None, Some(&operators), &["plimsoll_operators_leader 0"]);
    check(Some(&release), Some(&operators), &["plimsoll_leader 0", "plimsoll_operators_leader 0"]);
}

async fn get(stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let mut stream = stream;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

use tokio::io::{AsyncRead, AsyncWrite};

#[tokio::test]
async fn metrics_health_and_readiness_are_served() {
    let (shown, views) = watch::channel(view());
    let (stopping, ended) = (CancellationToken::new(), CancellationToken::new());
    let address = "127.0.0.1:0".parse().unwrap();
    let server =
        MetricsServer::bind(address, None, Some(views), None, stopping.clone()).await.unwrap();
    let address = server.address();
    let serving = tokio::spawn(server.serve(ended.clone()));
    let ask = async |path: &str| get(TcpStream::connect(address).await.unwrap(), path).await;
    assert!(ask("/metrics").await.contains("\nplimsoll_orphans 6\n"));
    assert!(ask("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(ask("/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(ask("/secrets").await.starts_with("HTTP/1.1 404"));
    shown.send_modify(|view| view.is_status_unwritable = true);
    let unwritable = ask("/readyz").await;
    assert!(unwritable.starts_with("HTTP/1.1 503"), "{unwritable}");
    assert!(unwritable.ends_with("cannot be written"), "{unwritable}");
    assert!(ask("/healthz").await.starts_with("HTTP/1.1 200"));
    shown.send_modify(|view| view.is_status_unwritable = false);
    assert!(ask("/readyz?verbose").await.ends_with("[+]shutdown ok\n[+]release-status ok"));
    stopping.cancel();
    assert!(ask("/readyz").await.starts_with("HTTP/1.1 503"));
    assert!(ask("/healthz").await.starts_with("HTTP/1.1 200"));
    ended.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_replaced_certificate_is_used_from_the_next_connection_on() {
    let directory = tempfile::tempdir().unwrap();
    let files = TlsFiles {
        certificate: directory.path().join("tls.crt"),
        key: directory.path().join("tls.key"),
    };
    let renew = || {
        let made = rcgen::generate_simple_self_signed(vec!["plimsoll".to_owned()]).unwrap();
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    };
    let first = renew();
    let (_view, views) = watch::channel(view());
    let ended = CancellationToken::new();
    let address = "127.0.0.1:0".parse().unwrap();
    let server = MetricsServer::bind(
        address,
        Some(files.clone()),
        Some(views),
        None,
        CancellationToken::new(),
    );
    let server = server.await.unwrap();
    let address = server.address();
    tokio::spawn(server.serve(ended.clone()));
    // Trusts one certificate alone.
    let ask = async |trusted: &rustls::pki_types::CertificateDer<'static>| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(address).await.unwrap();
        let stream = connector.connect("plimsoll".try_into().unwrap(), stream).await.ok()?;
        Some(get(stream, "/metrics").await)
    };
    assert!(ask(&first).await.unwrap().contains("plimsoll_leader 1"));
    std::fs::write(&files.certificate, "half a certificate").unwrap();
    assert!(ask(&first).await.is_some(), "a broken file leaves the old one in use");
    let second = renew();
    assert!(ask(&first).await.is_none());
    assert!(ask(&second).await.is_some());
    ended.cancel();
}
