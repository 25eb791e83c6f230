//! The service in one process: what it answers, to whom, and how a client that has an answer is spared it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use k8s_testkit::TestCluster;
use plimsoll_operators::snapshot::LoadoutSnapshot;
use plimsoll_source::catalog::open_source;
use serde_json::Value;

use super::*;
use crate::clock::SystemClock;

/// The catalog of these tests: lantern requires anchor.
const CATALOG: &str = r#"
{"schema":"olm.package","name":"anchor","defaultChannel":"stable"}
{"schema":"olm.channel","package":"anchor","name":"stable","entries":[{"name":"anchor.v1.0.0"}]}
{"schema":"olm.bundle","package":"anchor","name":"anchor.v1.0.0","image":"example.com/anchor:1","properties":[{"type":"olm.package","value":{"packageName":"anchor","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"example.com","version":"v1","kind":"Anchor"}}]}
{"schema":"olm.package","name":"lantern","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lantern","name":"stable","entries":[{"name":"lantern.v2.0.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v2.0.0","image":"example.com/lantern:2","properties":[{"type":"olm.package","value":{"packageName":"lantern","version":"2.0.0"}},{"type":"olm.package.required","value":{"packageName":"anchor","versionRange":">=1.0.0"}}]}
"#;

/// Returns the state with a catalog of this text.
fn state(text: &str) -> Arc<QueryState> {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("catalog.json"), text).expect("a file");
    let path = directory.path().to_string_lossy().into_owned();
    let source = plimsoll_api::olm::CatalogSource { path, ..Default::default() };
    let opened = open_source(&source, None).expect("a catalog");
    let (name, index) = ("main".to_owned(), Arc::new(opened.index));
    let catalog = QueriedCatalog { name, weight: 3, digest: opened.digest, index };
    Arc::new(QueryState::new(OperatorInventory::default(), vec![catalog]))
}

/// Allows every request with a token.
struct AnyToken;

impl Authority for AnyToken {
    async fn authenticate(&self, token: &str) -> Result<Option<Caller>, kube::Error> {
        Ok(Some(Caller { username: token.to_owned(), ..Caller::default() }))
    }

    async fn is_allowed(&self, caller: &Caller, _: &str, _: &str) -> Result<bool, kube::Error> {
        Ok(caller.username != "system:anonymous")
    }
}

/// A source of states of a process that does not lead.
struct NoState;

impl StateSource for NoState {
    async fn state(&self) -> Option<Arc<QueryState>> {
        None
    }
}

/// A source that does not answer.
struct SilentState;

impl StateSource for SilentState {
    async fn state(&self) -> Option<Arc<QueryState>> {
        std::future::pending().await
    }
}

/// Sends a request, `METHOD PATH`, with headers; the response and its body.
async fn send<S: StateSource, A: Authority>(
    service: &QueryService<S, A>,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (Response<()>, String) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())));
    let (parts, body) = service.respond(request.expect("a request")).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let body = String::from_utf8(body.to_vec()).expect("a text");
    (Response::from_parts(parts, ()), body)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

const TOKEN: (&str, &str) = ("authorization", "Bearer alice");

#[tokio::test]
async fn queries_are_answered_from_the_state() {
    let service = QueryService::new(state(CATALOG), AnyToken, Arc::new(SystemClock));
    let lantern = "* lantern v2.0.0 depends on anchor >= v1.0.0\nGenerate Operator resources for:\n\
                   - lantern@v2.0.0\n- anchor@v1.0.0\n";
    for (line, body) in [
        ("GET /v1/resolve?package=lantern", ""),
        ("GET /v1/resolve?package=lantern%40%3E%3D1+%3C3", ""),
        ("POST /v1/resolve", r#"{"packages": ["lantern"]}"#),
    ] {
        let (response, text) = send(&service, line, &[TOKEN], body).await;
        assert_eq!(response.status(), StatusCode::OK, "{line}: {text}");
        assert_eq!(json(&text)["text"], lantern, "{line}");
        let accept = ("accept", "text/plain");
        let (_, text) = send(&service, line, &[TOKEN, accept], body).await;
        assert_eq!(text, lantern, "{line}");
        let accept = ("accept", "application/json, text/plain, */*");
        let (_, text) = send(&service, line, &[TOKEN, accept], body).await;
        assert_eq!(json(&text)["text"], lantern, "{line}");
    }
    let unrelated = "GET /v1/resolve?package=anchor&exclude=lantern";
    let (_, text) = send(&service, unrelated, &[TOKEN], "").await;
    assert_eq!(json(&text)["plan"]["overrides"][0], "--exclude lantern has no effect");
    for (line, expected) in [
        ("GET /v1/packages", "anchor lantern"),
        ("GET /v1/packages?name=lantern", "lantern"),
        ("GET /v1/packages?provides=example.com/v1/Anchor", "anchor"),
        ("GET /v1/packages?provides=example.com/v1/Anchor&name=lantern", ""),
        ("GET /v1/packages?word=ANCH", "anchor"),
        ("GET /v1/packages?word=lan&word=tern", "lantern"),
    ] {
        let (_, text) = send(&service, line, &[TOKEN], "").await;
        let listed = json(&text);
        let names = listed["packages"].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names.join(" "), expected, "{line}: {text}");
    }
    let (_, text) = send(&service, "GET /v1/packages/anchor", &[TOKEN], "").await;
    let found = &json(&text)["catalogs"][0];
    assert_eq!((&found["catalog"], &found["weight"]), (&"main".into(), &3.into()));
    assert_eq!(found["package"]["bundles"][0]["name"], "anchor.v1.0.0");
    assert_eq!(found["index"]["bundles"][0]["image"], "example.com/anchor:1");
    let (_, text) = send(&service, "GET /v1/snapshot?package=lantern", &[TOKEN], "").await;
    let snapshot = LoadoutSnapshot::read(&text).expect("a snapshot");
    let images = BTreeMap::from([
        ("anchor.v1.0.0".to_owned(), "example.com/anchor:1".to_owned()),
        ("lantern.v2.0.0".to_owned(), "example.com/lantern:2".to_owned()),
    ]);
    assert_eq!((snapshot.catalogs.len(), &snapshot.catalogs[0].images), (1, &images));
    let (_, text) = send(&service, "GET /v1/config", &[TOKEN], "").await;
    let config = json(&text);
    assert_eq!((&config["format"], &config["catalogs"][0]["name"]), (&1.into(), &"main".into()));
}

#[tokio::test]
async fn providers_of_an_api_are_listed() {
    let service = QueryService::new(state(CATALOG), AnyToken, Arc::new(SystemClock));
    for api in ["Anchor", "anchor.example.com", "example.com/v1/Anchor"] {
        let line = format!("GET /v1/providers?api={api}");
        let (_, text) = send(&service, &line, &[TOKEN], "").await;
        let found = &json(&text)["packages"][0];
        assert_eq!((&found["name"], &found["versions"][0]), (&"anchor".into(), &"v1.0.0".into()));
    }
    let (_, text) = send(&service, "GET /v1/providers?api=Ancor", &[TOKEN], "").await;
    assert_eq!(json(&text)["note"], "no package provides `Ancor`, did you mean `Anchor`?");
    for (parameters, says) in [
        ("", "no API is named"),
        ("api=a/b", "write GROUP/VERSION/KIND"),
        ("api=A&api=B", "`api` is given twice"),
    ] {
        let line = format!("GET /v1/providers?{parameters}");
        let (response, text) = send(&service, &line, &[TOKEN], "").await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{line}");
        assert!(json(&text)["message"].as_str().is_some_and(|it| it.contains(says)), "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_as_an_api_server_does() {
    let service = QueryService::new(state(CATALOG), AnyToken, Arc::new(SystemClock));
    let anonymous = r#"forbidden: User "system:anonymous" cannot get path "/v1/packages""#;
    let no_token: &[(&str, &str)] = &[];
    let token: &[(&str, &str)] = &[TOKEN];
    let large = format!(r#"{{"packages": ["{}"]}}"#, "x".repeat(64 << 10));
    for (line, headers, body, code, reason, says) in [
        ("GET /v1/packages", no_token, "", 403, "Forbidden", anonymous),
        ("GET /v1/nothing", token, "", 404, "NotFound", "could not find the requested resource"),
        ("GET /v1/packages/", token, "", 404, "NotFound", "could not find the requested resource"),
        ("GET /v1/packages/ancor", token, "", 404, "NotFound", "`ancor`, did you mean `anchor`?"),
        ("GET /v1/resolve?package=x", token, "", 404, "NotFound", "`x`; there are anchor, lantern"),
        ("GET /v1/packages/anchor?x=", token, "", 400, "BadRequest", "unknown parameter `x`"),
        ("GET /v1/config?x=1", token, "", 400, "BadRequest", "there are none for this path"),
        ("GET /v1/packages?nam=x", token, "", 400, "BadRequest", "`nam`, did you mean `name`?"),
        ("GET /v1/packages?word=", token, "", 400, "BadRequest", "`word` has no value"),
        ("GET /v1/packages?name=x&name=y", token, "", 400, "BadRequest", "`name` is given twice"),
        ("GET /v1/packages?name=%zz", token, "", 400, "BadRequest", "two hexadecimal digits"),
        ("GET /v1/packages/%ff", token, "", 400, "BadRequest", "`%ff` is not UTF-8"),
        ("GET /v1/snapshot?package=", token, "", 400, "BadRequest", "`package` has no value"),
        (
            "GET /v1/resolve?package=anchor@1.0.0&versionRange=~1",
            token,
            "",
            400,
            "BadRequest",
            "leave out versionRange, or write `anchor`",
        ),
        ("DELETE /v1/packages", token, "", 405, "MethodNotAllowed", "does not allow this"),
        ("GET /v1/resolve", token, "", 400, "BadRequest", "no package is requested"),
        ("GET /v1/packages?provides=Foo", token, "", 400, "BadRequest", "write GROUP/VERSION"),
        ("GET /v1/snapshot?name=x", token, "", 400, "BadRequest", "`name`: there is package"),
        ("POST /v1/resolve", token, "{", 400, "BadRequest", "EOF while parsing"),
        ("POST /v1/resolve", token, large.as_str(), 413, "RequestEntityTooLarge", "limit is 65536"),
    ] {
        let (response, text) = send(&service, line, headers, body).await;
        let status = json(&text);
        assert_eq!((response.status().as_u16(), &status["code"]), (code, &code.into()), "{text}");
        assert_eq!((&status["kind"], &status["reason"]), (&"Status".into(), &reason.into()));
        assert!(status["message"].as_str().is_some_and(|it| it.contains(says)), "{line}: {text}");
    }
    for (line, header, code, says) in [
        (format!("GET /v1/packages/{}", "x".repeat(1 << 10)), TOKEN, 414, "limit is 1024"),
        (
            "POST /v1/resolve".to_owned(),
            ("content-encoding", "gzip"),
            415,
            "without Content-Encoding",
        ),
    ] {
        let (response, text) = send(&service, &line, &[TOKEN, header], "").await;
        assert_eq!(response.status().as_u16(), code, "{text}");
        assert!(json(&text)["message"].as_str().is_some_and(|it| it.contains(says)), "{text}");
    }
    for (line, allow) in [
        ("PUT /v1/resolve", "GET, HEAD, POST"),
        ("POST /v1/config", "GET, HEAD"),
        ("OPTIONS /v1/packages/anchor", "GET, HEAD"),
    ] {
        let (response, text) = send(&service, line, &[TOKEN], "").await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{line}: {text}");
        assert_eq!(response.headers()["allow"], allow, "{line}");
        assert_eq!(response.headers()["cache-control"], "private, no-cache", "{line}");
    }
    let standby = QueryService::new(NoState, AnyToken, Arc::new(SystemClock));
    let (response, text) = send(&standby, "GET /v1/packages", &[TOKEN], "").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{text}");
    assert_eq!(response.headers()["retry-after"], "1");
}

#[tokio::test]
async fn a_damaged_index_is_no_catalog_without_the_package() {
    let mut loader = plimsoll_content::catalog::CatalogLoader::new();
    loader.read_file("catalog.json", CATALOG.as_bytes());
    let mut bytes = loader.finish().index;
    let name = b"anchor.v1";
    let at = bytes.windows(name.len()).position(|it| it == name).expect("the block of anchor");
    bytes[at] ^= 1;
    let index = CatalogIndex::open(plimsoll_source::catalog::Bytes::Memory(bytes));
    let index = Arc::new(index.expect("its directories are whole"));
    let (name, digest) = ("main".to_owned(), "sha256:1".to_owned());
    let catalog = QueriedCatalog { name, weight: 3, digest, index };
    let state = Arc::new(QueryState::new(OperatorInventory::default(), vec![catalog]));
    let service = QueryService::new(state, AnyToken, Arc::new(SystemClock));
    for (line, code, says) in [
        ("GET /v1/packages", 500, "the index is damaged"),
        ("GET /v1/packages?name=anchor", 500, "the index is damaged"),
        ("GET /v1/packages/anchor", 500, "the index is damaged"),
        ("GET /v1/providers?api=Anchor", 500, "the index is damaged"),
        ("GET /v1/resolve?package=lantern", 500, "the index is damaged"),
        ("GET /v1/snapshot?package=lantern", 500, "the index is damaged"),
        ("GET /v1/packages/lantern", 200, "lantern.v2.0.0"),
        ("GET /v1/packages/ancor", 404, "did you mean `anchor`?"),
    ] {
        let (response, text) = send(&service, line, &[TOKEN], "").await;
        assert_eq!(response.status().as_u16(), code, "{line}: {text}");
        assert!(text.contains(says), "{line}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_given_up() {
    let service = QueryService::new(SilentState, AnyToken, Arc::new(SystemClock));
    let (response, text) = send(&service, "GET /v1/config", &[TOKEN], "").await;
    let status = json(&text);
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT, "{text}");
    assert_eq!((&status["kind"], &status["reason"]), (&"Status".into(), &"Timeout".into()));
    let silent = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
    let request = Request::post("/v1/resolve").header(TOKEN.0, TOKEN.1);
    let request = request.body(StreamBody::new(silent)).expect("a request");
    let (parts, body) = service.respond(request).await.into_parts();
    let text = body.collect().await.expect("a body").to_bytes();
    let status: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!((parts.status, &status["code"]), (StatusCode::REQUEST_TIMEOUT, &408.into()));
    assert_eq!((&status["kind"], &status["reason"]), (&"Status".into(), &"Timeout".into()));
    assert_eq!(parts.headers["connection"], "close");
}

#[tokio::test]
async fn too_many_queries_are_refused() {
    let service = QueryService::new(SilentState, AnyToken, Arc::new(SystemClock));
    let mut waiting = Vec::new();
    for _ in 0..service::RUNNING_MAX {
        let mut query = Box::pin(send(&service, "GET /v1/config", &[TOKEN], ""));
        tokio::select! {
            biased;
            _ = &mut query => unreachable!("it has no state to answer from"),
            () = std::future::ready(()) => {}
        }
        waiting.push(query);
    }
    let (response, text) = send(&service, "GET /v1/config", &[TOKEN], "").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{text}");
    drop(waiting);
}

#[tokio::test]
async fn an_answer_that_a_client_has_is_not_sent_again() {
    let service = QueryService::new(state(CATALOG), AnyToken, Arc::new(SystemClock));
    let line = "GET /v1/resolve?package=lantern";
    let (response, _) = send(&service, line, &[TOKEN], "").await;
    let tag = response.headers()["etag"].to_str().expect("a text").to_owned();
    let known = format!("\"x\", W/{tag}");
    let (response, text) = send(&service, line, &[TOKEN, ("if-none-match", &known)], "").await;
    assert_eq!((response.status(), text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    assert_eq!(response.headers()["etag"].to_str().expect("a text"), tag);
    let any = ("if-none-match", "*");
    let (response, _) = send(&service, line, &[TOKEN, any], "").await;
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
    let (response, _) = send(&service, "GET /v1/resolve?package=x", &[TOKEN, any], "").await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND, "there is no answer");
    let other = "GET /v1/resolve?package=anchor";
    let (response, _) = send(&service, other, &[TOKEN, ("if-none-match", &known)], "").await;
    assert_eq!(response.status(), StatusCode::OK);
    let text = CATALOG.replace("example.com/anchor:1", "example.com/anchor:2");
    let changed = QueryService::new(state(&text), AnyToken, Arc::new(SystemClock));
    let (response, _) = send(&changed, line, &[TOKEN, ("if-none-match", &known)], "").await;
    assert_eq!(response.status(), StatusCode::OK, "the catalog has other content");
}

/// Posts an object; what the API server makes of it.
async fn post(client: &Client, path: &str, object: Value) -> Value {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).expect("a request");
    client.request(request).await.expect("an administrator may")
}

#[tokio::test]
async fn the_api_server_says_who_may_ask() {
    let cluster = TestCluster::embedded();
    let client = cluster.client();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "alice" } });
    post(&client, accounts, account).await;
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "audiences": [] },
    });
    let issued = post(&client, &format!("{accounts}/alice/token"), request).await;
    let token = format!("Bearer {}", issued["status"]["token"].as_str().expect("a token"));
    let service = || {
        let authority = ClusterAuthority(Writer::new(client.clone()));
        QueryService::new(state(CATALOG), authority, Arc::new(SystemClock))
    };
    let alice = [("authorization", token.as_str())];
    let refused = service();
    let (response, text) = send(&refused, "GET /v1/packages", &alice, "").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN, "{text}");
    assert!(text.contains("system:serviceaccount:default:alice"), "{text}");
    assert_eq!(response.headers()["connection"], "close", "it may not keep its place");
    let forged = [("authorization", "Bearer forged")];
    let (response, text) = send(&refused, "GET /v1/packages", &forged, "").await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{text}");
    assert_eq!(response.headers()["connection"], "close", "it may not keep its place");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "asks" },
        "rules": [{ "nonResourceURLs": ["/v1/packages*"], "verbs": ["get"] }],
    });
    post(&client, &format!("{rbac}/clusterroles"), role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "asks" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asks" },
        "subjects": [{ "kind": "ServiceAccount", "name": "alice", "namespace": "default" }],
    });
    post(&client, &format!("{rbac}/clusterrolebindings"), binding).await;
    let granted = service();
    let (response, text) = send(&granted, "GET /v1/packages", &alice, "").await;
    assert_eq!(response.status(), StatusCode::OK, "{text}");
    let (response, text) = send(&granted, "GET /v1/resolve?package=anchor", &alice, "").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN, "{text}");
}

#[tokio::test]
async fn the_label_of_the_resolver_takes_permission_to_update_catalogs() {
    let cluster = TestCluster::embedded();
    let administrator = cluster.client();
    for object in plimsoll_api::policies::operator_policies() {
        let (kind, _) = plimsoll_api::policies::kind_and_name(&object).expect("a policy");
        post(&administrator, &format!("/apis/{}/{}", kind.api_version(), kind.plural), object)
            .await;
    }
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (name, group, resource) in [("deploys", "", "services"), ("catalogs", "olm.io", "catalogs")]
    {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name },
            "rules": [
                { "apiGroups": [group], "resources": [resource], "verbs": ["create", "update"] },
            ],
        });
        post(&administrator, &format!("{rbac}/clusterroles"), role).await;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [
                { "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name },
            ],
        });
        post(&administrator, &format!("{rbac}/clusterrolebindings"), binding).await;
    }
    let tenant = cluster.client_as("tenant", &["deploys"]);
    let keeper = cluster.client_as("keeper", &["deploys", "catalogs"]);
    for (client, name, label, refusal) in [
        (&tenant, "other", "something", None),
        (&tenant, "fake", "resolver", Some("tenant may not update Catalogs")),
        (&keeper, "real", "resolver", None),
    ] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name, "labels": { "plimsoll.io/serves": label } },
            "spec": { "ports": [{ "port": 443 }] },
        });
        let request = Request::post("/api/v1/namespaces/default/services");
        let request = request.header("content-type", "application/json");
        let request = request.body(service.to_string().into_bytes()).expect("a request");
        let refused = client.request::<Value>(request).await.err().map(|it| it.to_string());
        let is_expected = match (&refused, refusal) {
            (Some(refused), Some(refusal)) => refused.contains(refusal),
            (None, None) => true,
            _ => false,
        };
        assert!(is_expected, "{name}: {refused:?}");
    }
}
