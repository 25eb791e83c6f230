//! The command, the `resolution` Action and the service give the same answer byte for byte; and the command finds
//! the service by the API server's proxy.

mod locks;
mod lookups;
mod refusals;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use clap::Parser;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use plimsoll_api::olm::CatalogSource;
use plimsoll_api::olm::action::ActionSpec;
use plimsoll_content::expressions::Cel;
use plimsoll_controller::SystemClock;
use plimsoll_controller::operators::query::{
    Authority, Caller, QueriedCatalog, QueryService, QueryState,
};
use plimsoll_operators::actions::ActionFailure;
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::check::effective;
use plimsoll_operators::actions::files::built_in_classes;
use plimsoll_operators::actions::plan::ActionPlan;
use plimsoll_operators::actions::planning::{RESOLUTION, packages, plan};
use plimsoll_operators::inventory::OperatorInventory;
use plimsoll_operators::query::ResolutionQuery;
use plimsoll_source::catalog::open_source;
use serde_json::json;

use super::super::lint::{self, LintArguments};
use super::super::lock::{self, LockArguments};
use super::super::resolve::{ResolveArguments, run};
use super::*;
use crate::arguments::catalog::CatalogPath;
use crate::exit::Refusal;
use crate::prompt::Prompter;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: ResolveArguments,
}

#[derive(Parser)]
struct LintLine {
    #[command(flatten)]
    arguments: LintArguments,
}

#[derive(Parser)]
struct LockLine {
    #[command(flatten)]
    arguments: LockArguments,
}

/// Allows every request.
struct AnyClient;

impl Authority for AnyClient {
    async fn authenticate(&self, _: &str) -> Result<Option<Caller>, kube::Error> {
        Ok(None)
    }

    async fn is_allowed(&self, _: &Caller, _: &str, _: &str) -> Result<bool, kube::Error> {
        Ok(true)
    }
}

type Service = QueryService<Arc<QueryState>, AnyClient>;

/// A state, as a service and as what a resolution takes of it.
struct Setup {
    service: Service,
    inventory: OperatorInventory,
    /// The names of all packages.
    offered: BTreeSet<String>,
    directory: tempfile::TempDir,
}

/// A catalog as documents, with its weight.
struct Documents {
    name: String,
    weight: i64,
    text: String,
}

impl Setup {
    fn new(catalogs: Vec<Documents>, inventory: OperatorInventory) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let catalogs = catalogs.into_iter().map(|Documents { name, weight, text }| {
            let path = directory.path().join(&name);
            std::fs::create_dir(&path).expect("a directory");
            std::fs::write(path.join("catalog.json"), text).expect("a file");
            let path = path.to_string_lossy().into_owned();
            let source = CatalogSource { path, ..CatalogSource::default() };
            let opened = open_source(&source, None).expect("a catalog");
            QueriedCatalog { name, weight, digest: opened.digest, index: Arc::new(opened.index) }
        });
        let catalogs: Vec<QueriedCatalog> = catalogs.collect();
        let offered = catalogs.iter().flat_map(|it| it.index.package_names());
        let offered = offered.map(str::to_owned).collect();
        let state = Arc::new(QueryState::new(inventory.clone(), catalogs));
        let service = QueryService::new(state, AnyClient, Arc::new(SystemClock));
        Self { service, inventory, offered, directory }
    }

    /// Sends a request to the service; the status and the body.
    async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, String) {
        let (parts, body) = self.service.respond(request).await.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        (parts.status, String::from_utf8(body.to_vec()).expect("a text"))
    }

    /// Returns what the service answers; `None` if it refuses the query.
    async fn served(&self, query: &ResolutionQuery) -> Option<String> {
        let request = Request::post("/v1/resolve").header("accept", "text/plain");
        let request = request.body(Full::new(Bytes::from(json!(query).to_string())));
        let (status, text) = self.send(request.expect("a request")).await;
        (status == StatusCode::OK).then_some(text)
    }

    /// Returns the file of a snapshot for a query.
    async fn snapshot(&self, query: &ResolutionQuery) -> PathBuf {
        let named: Vec<String> = query.packages.iter().map(|it| format!("package={it}")).collect();
        let request = Request::get(format!("/v1/snapshot?{}", named.join("&")));
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        let (status, text) = self.send(request).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let path = self.directory.path().join("snapshot.json");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Returns what the command prints; `None` if it fails before it resolves.
    async fn printed(&self, query: &ResolutionQuery) -> Option<String> {
        let snapshot = self.snapshot(query).await.display().to_string();
        let nowhere = self.directory.path().join("nowhere").display().to_string();
        let mut words = vec!["resolve", "--dry-run", "--state", &snapshot, "--write", &nowhere];
        words.extend(query.packages.iter().map(String::as_str));
        for (option, value) in [("--channel", &query.channel), ("--repository", &query.repository)]
        {
            words.extend(value.iter().flat_map(|value| [option, value.as_str()]));
        }
        let line = Line::try_parse_from(words).expect("it is a command line");
        let mut out = Vec::new();
        let ended = run(None, &line.arguments, &mut Prompter::NonInteractive, &mut out).await;
        let text = String::from_utf8(out).expect("a text");
        match ended {
            Ok(_) => Some(text),
            Err(error) => {
                let refusal = error.downcast_ref::<Refusal>()?;
                Some(format!("{text}Error: {refusal}\n"))
            }
        }
    }

    /// Returns what the Action reports; `None` if it fails before it resolves.
    async fn reported(&self, query: &ResolutionQuery) -> Option<String> {
        match self.planned(query).await {
            Ok(plan) => Some(plan.result),
            Err(failure) => {
                let answer = failure.answer();
                answer.contains("\nError: ").then(|| answer.to_owned())
            }
        }
    }

    /// Returns the plan of the Action.
    async fn planned(&self, query: &ResolutionQuery) -> Result<ActionPlan, ActionFailure> {
        let spec = ActionSpec {
            package: query.packages[0].clone(),
            channel: query.channel.clone().unwrap_or_default(),
            repository: query.repository.clone().unwrap_or_default(),
            ..ActionSpec::default()
        };
        let classes = built_in_classes();
        let class = NamedClass::find(&classes, RESOLUTION).expect("a built-in class");
        let action = effective(&spec, class, None).expect("its attributes are right");
        let needed = ResolutionQuery {
            packages: packages(&action, &self.inventory),
            ..ResolutionQuery::default()
        };
        let path = self.snapshot(&needed).await;
        let text = std::fs::read_to_string(path).expect("a file");
        let snapshot = LoadoutSnapshot::read(&text).expect("a snapshot");
        let parts: Vec<_> = snapshot.catalogs.into_iter().map(|it| it.part).collect();
        let inventory =
            OperatorInventory { offered: self.offered.clone(), ..self.inventory.clone() };
        plan(&action, &inventory, None, &BTreeMap::new(), &parts, &Cel)
    }
}

/// A catalog with a package.
fn catalog() -> Documents {
    let text = r#"
{"schema":"olm.package","name":"lantern","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lantern","name":"stable","entries":[{"name":"lantern.v2.0.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v2.0.0","image":"example.com/lantern:2","properties":[{"type":"olm.package","value":{"packageName":"lantern","version":"2.0.0"}}]}
"#;
    Documents { name: "main".to_owned(), weight: 0, text: text.to_owned() }
}

/// The Services that say that they are the resolver, and how often they say that they cannot answer yet.
struct Served {
    service: Service,
    names: &'static [&'static str],
    refusals: usize,
}

/// Returns what an API server answers at a path: it has Services, a Catalog that cannot be read here, and an
/// Operator with its OperatorRevision.
fn stored(path: &str, services: &[&str]) -> String {
    if path == "/version" {
        return json!({
            "major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        })
        .to_string();
    }
    let items: Vec<serde_json::Value> = match path.rsplit('/').next().unwrap_or_default() {
        "services" => {
            let item = |name: &&str| json!({ "metadata": { "name": name, "namespace": "tools" } });
            services.iter().map(item).collect()
        }
        "catalogs" => vec![json!({
            "metadata": { "name": "main" },
            "spec": { "source": { "type": "Directory", "path": "/nowhere/main" } },
        })],
        "operators" => vec![json!({
            "metadata": { "name": "lantern" },
            "spec": { "version": "2.0.0" },
            "status": {
                "revision": 1,
                "bundle": {
                    "name": "lantern.v2.0.0", "version": "2.0.0", "digest": "sha256:1",
                    "channel": "stable", "catalog": "main",
                },
            },
        })],
        "operatorrevisions" => {
            let identity = json!({ "packageName": "lantern", "version": "2.0.0" });
            vec![json!({
                "metadata": { "name": "lantern-1" },
                "spec": {
                    "operator": "lantern",
                    "revision": 1,
                    "bundle": { "name": "lantern.v2.0.0" },
                    "properties": [{ "type": "olm.package", "value": identity }],
                },
            })]
        }
        _ => Vec::new(),
    };
    json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items }).to_string()
}

/// Returns a client of an API server that has the Service of a resolver, or none, and the paths that are asked for.
fn api_server(service: Option<Service>) -> (Client, Arc<Mutex<Vec<String>>>) {
    api_server_of(service.map(|service| Served { service, names: &["asked"], refusals: 0 }))
}

/// Returns the same of an API server that has Services.
fn api_server_of(served: Option<Served>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let names = served.as_ref().map(|it| it.names).unwrap_or_default();
    let refusals = served.as_ref().map_or(0, |it| it.refusals);
    let service = served.map(|it| it.service);
    let refusals = Arc::new(Mutex::new(refusals));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let answer = move |request: Request<Body>| {
        let (service, log) = (service.clone(), Arc::clone(&log));
        let refusals = Arc::clone(&refusals);
        async move {
            let path = request.uri().to_string();
            log.lock().expect("no thread panics").push(path.clone());
            let Some((_, query)) = path.split_once("/proxy/") else {
                let path = path.split('?').next().unwrap_or_default();
                return Ok::<_, kube::Error>(Response::new(Full::from(stored(path, names))));
            };
            let is_refused = {
                let mut left = refusals.lock().expect("no thread panics");
                let is_refused = *left > 0;
                *left = left.saturating_sub(1);
                is_refused
            };
            if is_refused {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "reason": "ServiceUnavailable", "code": 503, "message": "another replica leads",
                });
                let response = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
                let response = response.body(Full::from(status.to_string()));
                return Ok(response.expect("a response"));
            }
            let request = Request::get(format!("/{query}")).body(Full::new(Bytes::new()));
            let service = service.expect("it is listed");
            Ok(service.respond(request.expect("a request")).await)
        }
    };
    (Client::new(tower::service_fn(answer), "default"), asked)
}

#[tokio::test]
async fn catalogs_that_cannot_be_read_here_come_from_the_resolver() {
    let elsewhere = || OpenedCatalogs {
        opened: Vec::new(),
        elsewhere: vec![("main".to_owned(), PathBuf::from("/catalogs/main"))],
        ..OpenedCatalogs::default()
    };
    let setup = Setup::new(vec![catalog()], OperatorInventory::default());
    let (client, asked) = api_server(Some(setup.service.clone()));
    let (choice, names) = (CatalogChoice::default(), ["lantern", "lanter"].map(str::to_owned));
    let mut catalogs = elsewhere();
    let read = read_in_place_of(&mut catalogs, &choice, &client, &names).await;
    let read = read.expect("the resolver answers");
    assert!(catalogs.elsewhere.is_empty(), "they were read");
    require_package(&read, &catalogs, "lantern").expect("it is there");
    let error = require_package(&read, &catalogs, "lanter").expect_err("it is not there");
    assert_eq!(error.to_string(), "no catalog has package `lanter`, did you mean `lantern`?");
    let error = require_package(&read, &catalogs, "ledger").expect_err("it is not there");
    assert_eq!(error.to_string(), "no catalog has package `ledger`");
    let proxied =
        "/api/v1/namespaces/tools/services/https:asked:https/proxy/v1/snapshot?package=lantern";
    let asked = asked.lock().expect("no thread panics").clone();
    assert!(asked.iter().any(|it| it.contains(proxied)), "{asked:?}");

    let (client, _) = api_server(None);
    let mut catalogs = elsewhere();
    let read = read_in_place_of(&mut catalogs, &choice, &client, &names).await;
    assert!(read.expect("there is no resolver").catalogs.is_empty());
    assert_eq!(catalogs.elsewhere.len(), 1);
    let catalog = vec![CatalogPath::parse("main=x").expect("a catalog")];
    let named = CatalogChoice { catalog, no_cache: false };
    let (client, asked) = api_server(Some(setup.service.clone()));
    let read = read_in_place_of(&mut catalogs, &named, &client, &names).await;
    assert!(read.expect("catalogs are named").catalogs.is_empty());
    assert!(asked.lock().expect("no thread panics").is_empty());
}

#[tokio::test]
async fn many_packages_need_several_requests() {
    let names: Vec<String> = (0..2_000).map(|it| format!("lantern-{it}")).collect();
    let text = names.iter().map(|name| catalog().text.replace("lantern", name)).collect();
    let documents = Documents { text, ..catalog() };
    let service = Setup::new(vec![documents], OperatorInventory::default()).service;
    let (client, asked) = api_server(Some(service));
    let mut catalogs = OpenedCatalogs {
        elsewhere: vec![("main".to_owned(), PathBuf::from("/catalogs/main"))],
        ..OpenedCatalogs::default()
    };
    let choice = CatalogChoice::default();
    let read = read_in_place_of(&mut catalogs, &choice, &client, &names).await;
    let read = read.expect("the resolver answers");
    assert_eq!(read.catalogs[0].part.packages.len(), names.len());
    assert_eq!(read.catalogs[0].images.len(), names.len());
    let asked = asked.lock().expect("no thread panics").clone();
    let queries = asked.iter().filter(|it| it.contains("/proxy/"));
    let sizes: Vec<usize> = queries.map(String::len).collect();
    assert!(sizes.len() > 1 && sizes.iter().all(|it| *it <= 8 << 10), "{sizes:?}");
}

#[tokio::test]
async fn lint_and_lock_need_no_catalog_here() {
    let service = Setup::new(vec![catalog()], OperatorInventory::default()).service;
    let (client, asked) = api_server(Some(service));
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let manifest = "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {name: lantern}\nspec: {version: 2.0.0}\n";
    std::fs::write(file("lantern.yaml"), manifest).expect("a file");
    let path = directory.path().display().to_string();
    let line = LintLine::try_parse_from(["lint", &path, "--no-cache"]).expect("a command line");
    let mut out = Vec::new();
    lint::run(Some(&client), &line.arguments, &mut out).await.expect("the resolver answers");
    assert_eq!(String::from_utf8(out).expect("a text"), "0 errors, 0 warnings\n");
    let line = LockLine::try_parse_from(["lock", &path, "--no-cache"]).expect("a command line");
    let locked = lock::run(Some(&client), &line.arguments, &mut Vec::new()).await;
    locked.expect("the resolver answers");
    let text = std::fs::read_to_string(file("operators.lock")).expect("a file");
    assert!(text.contains(r#""contentDigest": "sha256:1""#), "{text}");
    let asked = asked.lock().expect("no thread panics").clone();
    let queries = asked.iter().filter(|it| it.ends_with("/v1/snapshot?package=lantern"));
    assert_eq!(queries.count(), 2, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_cannot_answer_yet_is_asked_again() {
    for (refusals, expected) in
        [(0, "1 catalog"), (ATTEMPTS - 1, "1 catalog"), (ATTEMPTS, "another replica leads")]
    {
        let service = Setup::new(vec![catalog()], OperatorInventory::default()).service;
        let (client, _) = api_server_of(Some(Served { service, names: &["asked"], refusals }));
        let mut catalogs = OpenedCatalogs {
            opened: Vec::new(),
            elsewhere: vec![("main".to_owned(), PathBuf::from("/catalogs/main"))],
            ..OpenedCatalogs::default()
        };
        let (choice, names) = (CatalogChoice::default(), ["lantern".to_owned()]);
        let read = read_in_place_of(&mut catalogs, &choice, &client, &names).await;
        let found = match read {
            Ok(read) => format!("{} catalog", read.catalogs.len()),
            Err(error) => format!("{error:#}"),
        };
        assert!(found.contains(expected), "{refusals}: {found}");
    }
}

#[tokio::test]
async fn one_of_several_services_is_not_chosen() {
    let service = Setup::new(vec![catalog()], OperatorInventory::default()).service;
    let names = &["asked", "other"];
    let (client, asked) = api_server_of(Some(Served { service, names, refusals: 0 }));
    let mut catalogs = OpenedCatalogs {
        opened: Vec::new(),
        elsewhere: vec![("main".to_owned(), PathBuf::from("/catalogs/main"))],
        ..OpenedCatalogs::default()
    };
    let (choice, names) = (CatalogChoice::default(), ["lantern".to_owned()]);
    let read = read_in_place_of(&mut catalogs, &choice, &client, &names).await;
    let error = read.expect_err("it is not known which one is meant").to_string();
    assert!(error.contains("tools/asked, tools/other"), "{error}");
    let asked = asked.lock().expect("no thread panics").clone();
    assert!(asked.iter().all(|it| !it.contains("/proxy/")), "{asked:?}");
}
