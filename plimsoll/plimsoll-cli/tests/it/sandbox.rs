//! The sandbox as a process: who gets in, and programs in place of a control plane's.

#![expect(clippy::panic, reason = "how a test fails")]

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_testkit::poll;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, from_value, json};

/// A process that ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.0.kill();
        self.0.wait().expect("the process ends");
    }
}

/// Starts `plimsoll sandbox serve` and waits until it listens.
fn serve(flags: &[&str]) -> Process {
    start(&[&["sandbox", "serve"], flags].concat(), "  kubectl ").0
}

/// Starts a command and waits until it prints a line with this beginning; also returns the lines up
/// to that one.
fn start(arguments: &[&str], beginning: &str) -> (Process, Vec<String>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let process = Process(child);
    let mut printed: Vec<String> = Vec::new();
    for line in output.lines().map_while(Result::ok) {
        printed.push(line);
        if printed.last().is_some_and(|line| line.starts_with(beginning)) {
            return (process, printed);
        }
    }
    panic!("{arguments:?} ended before {beginning:?}: {printed:?}");
}

#[tokio::test]
async fn the_demo_keeps_serving_and_names_the_kubeconfig() {
    let directory = tempfile::tempdir().expect("a directory");
    let named = directory.path().join("kubeconfig");
    let named = named.to_str().expect("a path");
    for flags in [&["--kubeconfig", named][..], &[]] {
        let arguments = [&["demo", "--keep", "--delay", "10ms"], flags].concat();
        let (mut demo, printed) = start(&arguments, "Staying up at ");
        let access = printed.iter().find_map(|it| it.strip_prefix("  kubectl --kubeconfig "));
        let (path, _) = access.and_then(|it| it.split_once(' ')).expect("a hint");
        assert!(flags.is_empty() || path == named, "{path}");
        let mode = std::fs::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
        let versions: Api<DynamicObject> =
            api(&client(Path::new(path), None).await, CLUSTER_VERSION);
        let version = versions.get("version").await.expect("it is served");
        assert_eq!(version.data["status"]["history"][0]["version"], "1.1.0");
        let interrupted = Command::new("kill").args(["-INT", &demo.0.id().to_string()]).status();
        assert!(interrupted.is_ok_and(|status| status.success()));
        assert!(demo.0.wait().expect("it ends").success());
        assert_eq!(Path::new(path).exists(), !flags.is_empty(), "the temporary file is deleted");
    }
}

/// A client of a kubeconfig, with its own credentials or others.
async fn client(kubeconfig: &Path, other: Option<AuthInfo>) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    if let Some(other) = other {
        let user = kubeconfig.auth_infos.first_mut().expect("a kubeconfig has a user");
        user.auth_info = Some(other);
    }
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a config");
    Client::try_from(config).expect("a client")
}

/// Whether config maps and Secrets can be listed.
async fn can_list(client: &Client) -> (bool, bool) {
    let parameters = ListParams::default();
    let maps = Api::<ConfigMap>::default_namespaced(client.clone()).list(&parameters).await;
    let secrets = Api::<Secret>::default_namespaced(client.clone()).list(&parameters).await;
    (maps.is_ok(), secrets.is_ok())
}

#[tokio::test]
async fn over_tls_permissions_are_those_of_the_user() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("kubeconfig");
    let file = path.to_str().expect("a path");
    let _server = serve(&["--kubeconfig", file]);
    let administrator = client(&path, None).await;
    assert_eq!(can_list(&administrator).await, (true, true));

    let parameters = PostParams::default();
    let account = from_value(json!({"metadata": {"name": "reader"}})).expect("an account");
    let accounts = Api::<ServiceAccount>::default_namespaced(administrator.clone());
    accounts.create(&parameters, &account).await.expect("an account");
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    });
    let bindings = Api::<RoleBinding>::default_namespaced(administrator);
    let binding = from_value(binding).expect("a binding");
    bindings.create(&parameters, &binding).await.expect("a binding");
    let wanted: TokenRequest = from_value(json!({"spec": {"audiences": []}})).expect("a request");
    let made = accounts.create_token_request("reader", &parameters, &wanted).await;
    let token = made.expect("a token").status.expect("a token has a status").token;

    let reader = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
    assert_eq!(can_list(&client(&path, Some(reader)).await).await, (true, false));
    let anonymous = AuthInfo::default();
    assert_eq!(can_list(&client(&path, Some(anonymous)).await).await, (false, false));
}

#[tokio::test]
async fn without_tls_whoever_reaches_the_server_is_its_administrator() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("kubeconfig");
    let file = path.to_str().expect("a path");
    let _server = serve(&["--plain", "--kubeconfig", file]);
    let anonymous = client(&path, Some(AuthInfo::default())).await;
    assert_eq!(can_list(&anonymous).await, (true, true));
}

/// Two ports of this machine that are free now. Both are held until both are found, so that they differ.
fn free_ports() -> [u16; 2] {
    [(); 2]
        .map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .map(|listener| listener.local_addr().expect("an address").port())
}

#[tokio::test]
async fn programs_start_as_envtest_starts_those_of_a_control_plane() {
    let directory = tempfile::tempdir().expect("a directory");
    let assets = directory.path().join("assets");
    let written = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["sandbox", "envtest"])
        .arg(&assets)
        .output()
        .expect("the program runs");
    let line = String::from_utf8(written.stdout).expect("text");
    assert_eq!(line.trim_end(), format!("export KUBEBUILDER_ASSETS='{}'", assets.display()));

    // Another program may take a port before this one does.
    let address = loop {
        if let Some(address) = service_address(&assets, directory.path()).await {
            break address;
        }
    };
    assert_eq!(address, "10.0.0.1");
}

/// Starts the programs of a control plane on free ports, and returns the address of its Service. Returns
/// nothing if a program says that its port is in use.
async fn service_address(assets: &Path, directory: &Path) -> Option<Value> {
    let [etcd, port] = free_ports();
    let etcd = format!("http://127.0.0.1:{etcd}");
    let tokens = directory.join("tokens.csv");
    std::fs::write(&tokens, "secret,admin,1,\"system:masters\"\n").expect("a file");
    let etcd_flags = [
        format!("--advertise-client-urls={etcd}"),
        format!("--data-dir={}", directory.join("data").display()),
        format!("--listen-client-urls={etcd}"),
        "--listen-peer-urls=http://localhost:0".to_owned(),
        "--unsafe-no-fsync=true".to_owned(),
    ];
    let server_flags = [
        "--advertise-address=127.0.0.1".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", directory.join("certificates").display()),
        format!("--etcd-servers={etcd}"),
        format!("--secure-port={port}"),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--token-auth-file={}", tokens.display()),
    ];
    let programs = [
        Program::start(assets, "etcd", &etcd_flags),
        Program::start(assets, "kube-apiserver", &server_flags),
    ];
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true,
        }}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    let path = directory.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).expect("a file");
    let client = client(&path, None).await;
    let address = || async {
        if programs.iter().any(Program::lacks_port) {
            return Some(None);
        }
        let request = http::Request::get("/api/v1/namespaces/default/services/kubernetes");
        let service: Value = client.request(request.body(Vec::new()).ok()?).await.ok()?;
        Some(Some(service["spec"]["clusterIP"].clone()))
    };
    poll("the server", address).await.expect("the server answers")
}

/// A program of a control plane.
struct Program {
    process: RefCell<Process>,
    /// What it prints about errors.
    errors: PathBuf,
}

impl Program {
    fn start(assets: &Path, name: &str, flags: &[String]) -> Self {
        let errors = assets.join(format!("{name}.log"));
        let file = File::create(&errors).expect("a file");
        let mut command = Command::new(assets.join(name));
        command.args(flags).stdout(Stdio::null()).stderr(file);
        let process = Process(command.spawn().expect("the program runs"));
        Self { process: RefCell::new(process), errors }
    }

    /// Returns whether it ended since another program has its port; another end is a failure.
    fn lacks_port(&self) -> bool {
        let ended = self.process.borrow_mut().0.try_wait().expect("it is a child");
        ended.is_some_and(|status| {
            let errors = std::fs::read_to_string(&self.errors).expect("a file");
            assert!(errors.contains("Address already in use"), "{status}: {errors}");
            true
        })
    }
}

#[test]
fn the_demo_updates_a_release_and_takes_an_operator_through_its_life() {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["demo", "--delay", "10ms"])
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    let mut rest = text.as_str();
    for expected in [
        "Installing version 1.0.0",
        "Updating to version 1.1.0",
        "Installing Operator lantern 1.0.0 from the example catalog",
        "lantern depends on ledger >=1.0.0 <2.0.0 but ledger is not installed",
        "lantern has what it requires",
        "lantern   True        ~1.1 (@v1.1.1)",
        "Deleting lantern",
        "ledger   True        ~1.4 (@v1.4.0)",
        "Tenant alice may request Actions in namespace team-a",
        "action.olm.io/install-lantern created",
        "install-lantern has succeeded",
        "Action team-a/install-lantern has succeeded",
        "Requester: alice",
        "tenants (Enforce): allowed",
        "lantern   True        ~1.1 (@v1.1.1)",
    ] {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("{expected:?} is missing or out of order in\n{text}"));
        rest = &rest[at + expected.len()..];
    }
}
