//! A control plane of real programs on loopback.

mod certificates;
mod files;

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;

use crate::error::StartError;
use crate::poll::PATIENCE;
use crate::process::Process;

/// The variable that names the directory of the programs, by the convention of the ecosystem.
pub(crate) const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// How long to wait between two looks at a server that starts.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often to start. A port that was free may be taken by the time it is used.
const ATTEMPTS: usize = 3;

/// The controllers that need no nodes to be of use. Those of workloads are left out: nothing would
/// ever run, and whoever plays them in a test would have them as rivals.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,\
    serviceaccount-controller,clusterrole-aggregation-controller,\
    root-ca-certificate-publisher-controller";

/// What the API server and the controllers make of a new cluster, each with texts that it contains in the
/// end. Once it is there, they are at work, and nothing of theirs comes into the midst of a test. What a
/// role aggregates comes from one that aggregates others, too.
const GIVEN: [(&str, &[&str]); 6] = [
    ("/api/v1/namespaces/default/services/kubernetes", &[]),
    ("/api/v1/namespaces/default/configmaps/kube-root-ca.crt", &[]),
    ("/api/v1/namespaces/default/serviceaccounts/default", &[]),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles/view", &["pods/log"]),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles/edit", &["pods/log", "pods/exec"]),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
        &["pods/log", "pods/exec", "localsubjectaccessreviews"],
    ),
];

/// Whether the API server keeps an audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuditLog {
    /// Of every write, as tests read it.
    Kept,
    /// None, as an embedded server has none unless it is told to.
    Absent,
}

/// The running programs; dropped in this order, so that no client misses its server.
pub(crate) struct ControlPlane {
    controller_manager: Process,
    api_server: Process,
    etcd: Process,
    config: Config,
    kubeconfig: PathBuf,
    directory: TempDir,
}

/// The directory of the programs, if the environment names one.
pub(crate) fn assets() -> Option<PathBuf> {
    std::env::var_os(ASSETS_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl ControlPlane {
    /// Starts etcd, kube-apiserver and kube-controller-manager and waits until the API server is
    /// ready and the controllers are at work.
    pub(crate) async fn start(assets: &Path, audit: AuditLog) -> Result<Self, StartError> {
        let mut attempt = 1;
        loop {
            match Self::start_once(assets, audit).await {
                Err(StartError::Exited { .. }) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn start_once(assets: &Path, audit: AuditLog) -> Result<Self, StartError> {
        let assets = assets.canonicalize().map_err(|source| StartError::Prepare {
            action: "find the directory that KUBEBUILDER_ASSETS names",
            source,
        })?;
        let directory = files::directory()?;
        let root = directory.path();
        let [etcd_port, api_port, manager_port] = free_ports()?;

        let etcd = Process::spawn(&assets, "etcd", root, &etcd_arguments(root, etcd_port))?;
        files::write_certificates(root)?;
        files::write_tokens(root)?;
        files::write_audit_policy(root)?;
        let arguments = api_server_arguments(root, etcd_port, api_port, audit);
        let api_server = Process::spawn(&assets, "kube-apiserver", root, &arguments)?;
        let mut starting = Starting { etcd, api_server, since: Instant::now() };

        let kubeconfig = files::write_kubeconfig(root, api_port)?;
        let config = client_config(&kubeconfig).await?;
        starting.wait_until_ready(&config).await?;
        let arguments = controller_manager_arguments(root, &kubeconfig, manager_port);
        let mut controller_manager =
            Process::spawn(&assets, "kube-controller-manager", root, &arguments)?;
        let client = new_client(&config)?;
        for (path, texts) in GIVEN {
            while !answers(&client, path, texts).await {
                controller_manager.check()?;
                starting.look_again().await?;
            }
        }

        Ok(Self {
            controller_manager,
            api_server: starting.api_server,
            etcd: starting.etcd,
            config,
            kubeconfig,
            directory,
        })
    }

    /// A client of its own, with its own connections.
    pub(crate) fn client(&self) -> Client {
        new_client(&self.config).expect("the same configuration made a client before")
    }

    /// The programs by name, with their process ids.
    pub(crate) fn processes(&self) -> [(&'static str, u32); 3] {
        [&self.api_server, &self.etcd, &self.controller_manager]
            .map(|process| (process.name(), process.id()))
    }

    /// Where the audit log lies.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.directory.path().join(files::AUDIT_LOG)
    }

    /// Where the kubeconfig lies.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

/// What runs while the API server starts.
struct Starting {
    etcd: Process,
    api_server: Process,
    since: Instant,
}

impl Starting {
    async fn wait_until_ready(&mut self, config: &Config) -> Result<(), StartError> {
        let client = new_client(config)?;
        // Until it listens, connections are refused; until it is ready, it answers 500.
        while !answers(&client, "/readyz", &[]).await {
            self.look_again().await?;
        }
        Ok(())
    }

    /// Sleeps, and gives up if something ended or it took too long.
    async fn look_again(&mut self) -> Result<(), StartError> {
        self.etcd.check()?;
        self.api_server.check()?;
        let waited = self.since.elapsed();
        if waited > PATIENCE {
            return Err(StartError::NotReady {
                program: self.api_server.name(),
                waited,
                log: self.api_server.log_end(),
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
        Ok(())
    }
}

/// Whether the API server answers a GET with something that contains some texts.
async fn answers(client: &Client, path: &str, texts: &[&str]) -> bool {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.expect("a constant request is well-formed");
    let answer = client.request_text(request).await;
    answer.is_ok_and(|answer| texts.iter().all(|text| answer.contains(text)))
}

/// The configuration of a client, read as any user of the kubeconfig reads it.
async fn client_config(kubeconfig: &Path) -> Result<Config, StartError> {
    let client =
        |source: kube::config::KubeconfigError| StartError::Client { source: Box::new(source) };
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(client)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(client)?;
    // Whoever is tested has to see what the server answers.
    config.default_retry = false;
    Ok(config)
}

fn new_client(config: &Config) -> Result<Client, StartError> {
    ClientBuilder::try_from(config.clone())
        .map(ClientBuilder::build)
        .map_err(|source| StartError::Client { source: Box::new(source) })
}

/// Ports that were free a moment ago; all are held until the last is found, so that they differ.
fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], StartError> {
    let prepare = |source| StartError::Prepare { action: "find a free port", source };
    let mut ports = [0; COUNT];
    let mut held = Vec::with_capacity(COUNT);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(prepare)?;
        *port = listener.local_addr().map_err(prepare)?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn etcd_arguments(root: &Path, port: u16) -> Vec<String> {
    let client_url = format!("http://127.0.0.1:{port}");
    vec![
        format!("--data-dir={}", root.join("etcd").display()),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        // Nothing of it is to survive.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server_arguments(root: &Path, etcd_port: u16, port: u16, audit: AuditLog) -> Vec<String> {
    let path = |file: &str| root.join(file).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", path(files::CERTIFICATE)),
        format!("--tls-private-key-file={}", path(files::PRIVATE_KEY)),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", path(files::PUBLIC_KEY)),
        format!("--service-account-signing-key-file={}", path(files::PRIVATE_KEY)),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", path(files::TOKENS)),
        "--allow-privileged=true".to_owned(),
        // Starting sooner: no shares among clients, no endpoint of a service that is not called.
        "--enable-priority-and-fairness=false".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ];
    if audit == AuditLog::Kept {
        arguments.push(format!("--audit-policy-file={}", path(files::AUDIT_POLICY)));
        arguments.push(format!("--audit-log-path={}", path(files::AUDIT_LOG)));
    }
    arguments
}

fn controller_manager_arguments(root: &Path, kubeconfig: &Path, port: u16) -> Vec<String> {
    let path = |file: &str| root.join(file).display().to_string();
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", path(files::CERTIFICATE)),
        format!("--tls-private-key-file={}", path(files::PRIVATE_KEY)),
        format!("--root-ca-file={}", path(files::AUTHORITY)),
        format!("--service-account-private-key-file={}", path(files::PRIVATE_KEY)),
        format!("--controllers={CONTROLLERS}"),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=false".to_owned(),
        // What tests wait for must not queue.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}
