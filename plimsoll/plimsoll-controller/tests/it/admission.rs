//! The admission of Actions on both clusters: who requests them, who changes them, who approves them, who
//! writes their status, and what does not fit their class, with the webhooks and without.

mod cases;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_testkit::{TestCluster, clusters, poll};
use kube::Client;
use kube::client::Body;
use plimsoll_api::olm::action::ActionClassSpec;
use plimsoll_api::{ACTION, ACTION_CLASS, CRON_ACTION, EVENT_ACTION, RETRY_ACTION, classes, crd};
use plimsoll_controller::actions::admission::{
    self, ActionWebhooks, AdmissionRequest, Decision, Denial,
};
use plimsoll_controller::permissions::action_permissions;
use plimsoll_controller::{Clock, Reached, SharedClock, SystemClock, WebhookSettings};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::check;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::cases::{CLASS_RIGHTS, Case, RIGHTS, Wrong};

const GROUP: &str = "/apis/olm.io/v1";
const ACTIONS: &str = "/apis/olm.io/v1/namespaces/default";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";
/// The user that the controller is.
const ROBOT: &str = "robot";
/// A class whose name is text in an expression.
const GUARDED: &str = "operator-\"delete\"\\";

/// What was asked of the function that decides.
type Asked = Arc<Mutex<Vec<AdmissionRequest>>>;

/// A cluster with the definitions and the policies of Actions, and with users.
struct Setup {
    cluster: TestCluster,
    /// An administrator's.
    client: Client,
    /// With the derived rights of the controller.
    controller: Client,
    stop: CancellationToken,
}

impl Setup {
    async fn of(cluster: TestCluster) -> Self {
        let client = cluster.client();
        let permissions = action_permissions(true);
        let kube_system = "/namespaces/kube-system";
        grant(&client, kube_system, "admission", &[ROBOT], &json!(permissions.lease_namespace))
            .await;
        grant(&client, "", "admission", &[ROBOT], &json!(permissions.cluster)).await;
        let of_classes = serde_json::from_str(CLASS_RIGHTS).expect("the rights are JSON");
        grant(&client, "", "classes", &["dora"], &of_classes).await;
        for (name, users, rules) in RIGHTS {
            let rules = serde_json::from_str(rules).expect("the rights are JSON");
            grant(&client, "/namespaces/default", name, users, &rules).await;
        }
        let setup = Self {
            controller: cluster.client_as(ROBOT, &[]),
            cluster,
            client,
            stop: CancellationToken::new(),
        };
        // A real API server learns of roles later.
        let install =
            || async { admission::install_policies(&setup.controller, &setup.stop).await.ok() };
        poll("the policies", install).await.expect("the controller may apply them");
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for definition in crd::action_manifests() {
            write(&setup.client, definitions, &definition).await;
        }
        setup
    }

    /// Serves the webhooks, which allow requests for guarded classes to Alice; what was asked about
    /// them, and the guarded classes.
    async fn serve(&self) -> (Asked, watch::Sender<BTreeSet<String>>) {
        self.serve_at(Arc::new(SystemClock)).await
    }

    /// Serves them at another time.
    async fn serve_at(&self, clock: SharedClock) -> (Asked, watch::Sender<BTreeSet<String>>) {
        let (asked, guarded) = (Asked::default(), watch::Sender::default());
        let log = Arc::clone(&asked);
        let decide = move |request: AdmissionRequest| {
            if !request.is_guarded {
                return Decision { allowed: true, ..Decision::default() };
            }
            let decision = Decision {
                allowed: request.requester.username == "alice",
                denial: Denial::Forbidden,
                message: format!("no policy allows it to {}", request.requester.username),
                warnings: vec!["it is reviewed".to_owned()],
                audit: vec![("policy".to_owned(), "tenants".to_owned())],
            };
            log.lock().expect("no thread panics").push(request);
            decision
        };
        self.serve_with(clock, &guarded, decide).await;
        (asked, guarded)
    }

    /// Serves the webhooks.
    async fn serve_with<F>(
        &self,
        clock: SharedClock,
        guarded: &watch::Sender<BTreeSet<String>>,
        decide: F,
    ) where
        F: Fn(AdmissionRequest) -> Decision + Clone + Send + Sync + 'static,
    {
        let settings = WebhookSettings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            reached: Reached::Host("127.0.0.1".to_owned()),
        };
        let decide = move |request| std::future::ready(decide(request));
        let webhooks = ActionWebhooks { settings, guarded: guarded.subscribe(), decide };
        let started = webhooks.start(&self.controller, clock, &self.stop).await;
        started.expect("the webhooks are served");
    }

    /// Removes what sets requesters in the API server, as if it did not serve such policies.
    async fn without_requester_policy(&self) {
        let name = "action-requester.plimsoll.io";
        let line = format!("DELETE {HOOKS}/mutatingadmissionpolicybindings/{name}");
        let (status, _, answer) = send(&self.client, &line, &Value::Null).await;
        assert_eq!(status, 200, "{answer}");
        self.until(cases::NO_ANSWER).await;
    }

    /// Sends a request as a user: status, warnings, body.
    async fn ask(&self, who: &str, line: &str, body: &str) -> (u16, Vec<String>, Value) {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let mut object: Value = serde_json::from_str(body).expect("the cases are JSON");
        if method != "PATCH" {
            let plural = path.split(['/', '?']).next().unwrap_or(path);
            let kinds = [ACTION, RETRY_ACTION, CRON_ACTION, EVENT_ACTION, ACTION_CLASS];
            let kind = kinds.iter().find(|kind| kind.plural == plural).expect("a kind");
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = kind.kind.into();
        }
        let place = if path.starts_with(ACTION_CLASS.plural) { GROUP } else { ACTIONS };
        let line = format!("{method} {place}/{path}");
        let groups: &[&str] = if who == "alice" { &["dev"] } else { &[] };
        send(&self.cluster.client_as(who, groups), &line, &object).await
    }

    async fn check(&self, cases: &[Case]) {
        for (what, who, line, body, status, says) in cases {
            let (found, warnings, answer) = self.ask(who, line, body).await;
            let said = format!("{} {}", answer, warnings.join("; "));
            let kind = self.cluster.kind();
            assert_eq!(found, *status, "{kind}: {what}: {said}");
            assert!(said.contains(says), "{kind}: {what}: {said}");
        }
    }

    /// Sends a manifest of Alice as kubectl does: status, and what is said.
    async fn create(&self, kind: &str, spec: &str, is_dry: bool) -> (u16, String) {
        let dry_run = if is_dry { "&dryRun=All" } else { "" };
        let line = format!("POST {kind}?fieldValidation=Strict{dry_run}");
        let body = format!(r#"{{"metadata": {{"generateName": "m-"}}, "spec": {spec}}}"#);
        let (status, _, answer) = self.ask("alice", &line, &body).await;
        (status, answer.to_string())
    }

    /// Asks until a wrong manifest is refused.
    async fn until_refused(&self, wrong: Wrong) {
        let (what, kind, spec, says) = wrong;
        let is_so = || async {
            let (status, said) = self.create(kind, spec, true).await;
            (status >= 400 && said.contains(says)).then_some(())
        };
        poll(what, is_so).await.expect("it takes effect");
    }

    /// Asks until the answer to a request that stores nothing is another one.
    async fn until(&self, case: Case) {
        let (what, who, line, body, status, says) = case;
        let line = format!("{line}{}dryRun=All", if line.contains('?') { '&' } else { '?' });
        let is_so = || async {
            let (found, _, answer) = self.ask(who, &line, body).await;
            (found == status && answer.to_string().contains(says)).then_some(())
        };
        poll(what, is_so).await.expect("it takes effect");
    }

    /// The certificate of the webhooks, and those that the API server trusts.
    async fn certificates(&self) -> (String, String) {
        let text = |it: &Value| {
            let bytes = BASE64_STANDARD.decode(it.as_str().unwrap_or_default()).expect("base64");
            String::from_utf8(bytes).expect("PEM")
        };
        let line = "GET /api/v1/namespaces/kube-system/secrets/plimsoll-action-webhook";
        let (_, _, secret) = send(&self.client, line, &Value::Null).await;
        let line = format!("GET {HOOKS}/validatingwebhookconfigurations/plimsoll-actions");
        let (_, _, found) = send(&self.client, &line, &Value::Null).await;
        (text(&secret["data"]["tls.crt"]), text(&found["webhooks"][0]["clientConfig"]["caBundle"]))
    }

    /// The webhooks of the configuration that validates.
    async fn guards(&self) -> (u16, usize) {
        let line = format!("GET {HOOKS}/validatingwebhookconfigurations/plimsoll-actions");
        let (status, _, found) = send(&self.client, &line, &Value::Null).await;
        (status, found["webhooks"].as_array().map_or(0, Vec::len))
    }
}

/// A clock that is behind by some days.
struct Behind(AtomicI64);

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        Timestamp::now() - SignedDuration::from_hours(24 * self.0.load(Ordering::SeqCst))
    }
}

/// Lets users do what some rules say, in a namespace or everywhere.
async fn grant(client: &Client, place: &str, name: &str, users: &[&str], rules: &Value) {
    let (kind, plural) = match place {
        "" => ("ClusterRole", "clusterrole"),
        _ => ("Role", "role"),
    };
    let subjects = users.iter().map(|user| json!({ "kind": "User", "name": user }));
    let subjects: Vec<Value> = subjects.collect();
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    let role_ref = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name });
    let binding =
        json!({ "metadata": { "name": name }, "roleRef": role_ref, "subjects": subjects });
    write(client, &format!("{RBAC}{place}/{plural}s"), &role).await;
    write(client, &format!("{RBAC}{place}/{plural}bindings"), &binding).await;
}

/// Creates an object, as soon as its kind is served.
async fn write(client: &Client, path: &str, object: &Value) {
    let line = format!("POST {path}");
    let answered = || async {
        let (status, _, answer) = send(client, &line, object).await;
        (status != 404).then_some((status, answer))
    };
    let (status, answer) = poll(path, answered).await.expect("the kind is served");
    assert_eq!(status, 201, "{path}: {answer}");
}

async fn send(client: &Client, line: &str, body: &Value) -> (u16, Vec<String>, Value) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let (method, content_type) = match method {
        "APPLY" => ("PATCH", "application/apply-patch+yaml"),
        "PATCH" => ("PATCH", "application/merge-patch+json"),
        _ => (method, "application/json"),
    };
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).expect("a method"))
        .uri(path)
        .header("content-type", content_type)
        .body(Body::from(bytes))
        .expect("a request");
    let response = client.send(request).await.expect("an answer");
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()).collect();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, warnings, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_is_set_and_cannot_be_forged() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        for sign in cases::SIGNS {
            setup.until(*sign).await;
        }
        setup.check(cases::REQUESTERS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_sets_requesters_where_the_api_server_does_not() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        setup.without_requester_policy().await;
        let _served = setup.serve().await;
        for sign in cases::SIGNS {
            setup.until(*sign).await;
        }
        setup.check(cases::REQUESTERS).await;
        setup.stop.cancel();
        // A server that is asked on a connection that it has answers once more.
        setup.until(cases::NO_ANSWER).await;
        setup.check(cases::WITHOUT_WEBHOOK).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_of_the_controller_of_its_class_and_final() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        for sign in cases::SIGNS {
            setup.until(*sign).await;
        }
        setup.check(cases::STATUS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_built_in_classes_are_not_taken() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        for case in cases::CLASS_NAMES.iter().filter(|(.., status, _)| *status == 422).take(1) {
            setup.until(*case).await;
        }
        setup.check(cases::CLASS_NAMES).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_that_do_not_fit_their_class_are_refused() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        let mut named = Vec::new();
        let own = cases::CLASSES.iter().map(|it| serde_json::from_str(it).expect("JSON"));
        for mut class in classes::built_in().into_iter().chain(own) {
            class["apiVersion"] = ACTION_CLASS.api_version().into();
            class["kind"] = ACTION_CLASS.kind.into();
            write(&setup.client, &format!("{GROUP}/actionclasses"), &class).await;
            let spec = ActionClassSpec::deserialize(&class["spec"]).expect("it can be read");
            let name = class["metadata"]["name"].as_str().expect("a name").to_owned();
            named.push(NamedClass::new(name, spec));
        }
        let decide = move |request: AdmissionRequest| {
            let class = NamedClass::find(&named, &request.action.action_class);
            let class = class.filter(|_| request.user.username == request.requester.username);
            let wrong = class.map(|it| check::request(&request.action, it)).unwrap_or_default();
            let messages: Vec<String> = wrong.into_iter().map(|it| it.message).collect();
            Decision {
                allowed: messages.is_empty(),
                denial: Denial::Invalid,
                message: messages.join("; "),
                ..Decision::default()
            }
        };
        let clock = Arc::new(SystemClock);
        setup.serve_with(clock, &watch::Sender::default(), decide).await;
        setup.until_refused(cases::CHECKED).await;
        setup.until_refused(cases::COMPARED).await;
        for (what, plural, spec, says) in cases::WRONG {
            let (status, said) = setup.create(plural, spec, false).await;
            assert!(matches!(status, 400 | 422), "{kind}: {what}: {status} {said}");
            assert!(said.contains(says), "{kind}: {what}: {said}");
        }
        let (status, _, said) = setup.ask("robot", "POST actions", cases::OF_TEMPLATE).await;
        assert_eq!(status, 201, "{kind}: what a template makes fails and says why: {said}");
        for (plural, spec) in cases::RIGHT {
            let (status, said) = setup.create(plural, spec, false).await;
            assert_eq!(status, 201, "{kind}: {spec}: {said}");
        }
        setup.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_class_is_decided_about() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        let (asked, guarded) = setup.serve().await;
        for sign in cases::SIGNS {
            setup.until(*sign).await;
        }
        assert_eq!(setup.guards().await, (200, 2), "{kind}: no class is guarded");
        guarded.send_replace(BTreeSet::from([GUARDED.to_owned(), "autoremove".to_owned()]));
        setup.until(cases::IS_GUARDED).await;
        asked.lock().expect("no thread panics").clear();
        setup.check(cases::GUARD).await;
        let asked: Vec<_> = std::mem::take(&mut *asked.lock().expect("no thread panics"))
            .into_iter()
            .map(|it| {
                format!(
                    "{} {} of {} by {}",
                    it.kind, it.name, it.requester.username, it.user.username
                )
            })
            .collect();
        assert_eq!(asked, cases::GUARD_ASKED, "{kind}");
        let audited = setup.cluster.audit().into_iter().any(|event| {
            event["annotations"]["guard.actions.plimsoll.io/policy"] == "tenants"
                && event["impersonatedUser"]["username"] == "robot"
        });
        assert!(audited, "{kind}: the audit log has what the decision says");
        guarded.send_replace(BTreeSet::from([GUARDED.to_owned()]));
        setup.until(cases::IS_NOT_GUARDED).await;
        assert_eq!(setup.guards().await, (200, 4), "{kind}: a class is still guarded");
        guarded.send_replace(BTreeSet::new());
        setup.until(cases::NOTHING_IS_GUARDED).await;
        assert_eq!(setup.guards().await, (200, 2), "{kind}: no class is guarded any more");
        guarded.send_replace(BTreeSet::from([GUARDED.to_owned()]));
        setup.until(cases::IS_GUARDED).await;
        setup.stop.cancel();
        setup.until(cases::GUARD_FAILS).await;
        setup.check(cases::WITHOUT_GUARD).await;
        let stop = CancellationToken::new();
        admission::remove(&setup.controller, &stop).await.expect("they are removed");
        assert_eq!(setup.guards().await.0, 404, "{kind}");
        setup.until(cases::IS_REMOVED).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_before_its_end_and_requests_are_decided_about_meanwhile() {
    for kind in clusters() {
        let setup = Setup::of(kind.start().await.expect("the cluster starts")).await;
        // One that was made 70 days ago is valid for 20 more.
        let clock = Arc::new(Behind(AtomicI64::new(70)));
        let (_, guarded) = setup.serve_at(Arc::clone(&clock) as SharedClock).await;
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        for sign in cases::SIGNS {
            setup.until(*sign).await;
        }
        guarded.send_replace(names(&[GUARDED]));
        setup.until(cases::IS_GUARDED).await;
        let (first, trusted) = setup.certificates().await;
        assert_eq!(first, trusted, "{kind}");
        clock.0.store(0, Ordering::SeqCst);
        // It is looked at whenever the guarded classes change.
        guarded.send_replace(names(&[GUARDED, "autoremove"]));
        let both = || async {
            let (second, trusted) = setup.certificates().await;
            (second != first && trusted == format!("{second}{first}")).then_some(second)
        };
        let second = poll("another certificate", both).await.expect("it is replaced");
        setup.until(cases::IS_GUARDED).await;
        guarded.send_replace(names(&[GUARDED, "autoremove", "another"]));
        let trusted = || async { (setup.certificates().await.1 == second).then_some(()) };
        poll("trust in the new one alone", trusted).await.expect("the former one is left out");
        setup.until(cases::IS_GUARDED).await;
        setup.check(cases::GUARD).await;
        setup.stop.cancel();
    }
}
