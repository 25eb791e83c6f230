//! A server as a process of its own, and a client of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use k8s_apiserver::{ApiServer, Options};
use k8s_testkit::{ClusterKind, TestCluster};
use kube::client::ClientBuilder;
use kube::{Client, Config};

/// The word that makes this program be the embedded server.
pub(crate) const SERVE: &str = "serve";

/// The unit of processor times in `/proc`, on every Linux there is.
const TICKS_PER_SECOND: f64 = 100.0;

/// A server under load.
pub(crate) struct Stage {
    pub(crate) kind: ClusterKind,
    pub(crate) client: Client,
    server: Server,
}

enum Server {
    Embedded(Child),
    Real(TestCluster),
}

impl Stage {
    pub(crate) async fn start(kind: ClusterKind) -> Result<Self, anyhow::Error> {
        match kind {
            ClusterKind::Embedded => Self::embedded(),
            ClusterKind::ControlPlane => {
                let cluster = TestCluster::control_plane_without_audit().await?;
                Ok(Self { kind, client: cluster.client(), server: Server::Real(cluster) })
            }
        }
    }

    /// This program once more, as the embedded server.
    pub(crate) fn embedded() -> Result<Self, anyhow::Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().context("the output of the server is piped")?;
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        let mut config = Config::new(url.trim().parse()?);
        config.default_retry = false;
        let client = ClientBuilder::try_from(config)?.build();
        Ok(Self { kind: ClusterKind::Embedded, client, server: Server::Embedded(child) })
    }

    /// The resident memory of the embedded server in bytes.
    pub(crate) fn resident(&self) -> Result<u64, anyhow::Error> {
        let Server::Embedded(child) = &self.server else {
            anyhow::bail!("several processes make up a real one");
        };
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)).context("no VmRSS")?;
        Ok(kib.parse::<u64>()? << 10)
    }
}

/// Processor time that a server has used, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessorTime {
    /// Of the API server's process, which is all there is of the embedded one.
    pub(crate) api_server: f64,
    /// Of all processes: of a real control plane also etcd and the controller manager.
    pub(crate) all: f64,
}

impl Stage {
    /// The processor time that the processes of the server have used.
    pub(crate) fn processor_time(&self) -> ProcessorTime {
        let processes = match &self.server {
            Server::Embedded(child) => vec![child.id()],
            Server::Real(cluster) => cluster.processes().into_iter().map(|(_, id)| id).collect(),
        };
        let times: Vec<f64> =
            processes.into_iter().map(|id| used_by(id).unwrap_or_default()).collect();
        let api_server = times.first().copied().unwrap_or_default();
        ProcessorTime { api_server, all: times.iter().sum() }
    }
}

/// The processor time that a process has used, in seconds.
fn used_by(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // What comes after the name: the state, the parent, and so on.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let time = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((time(11)? + time(12)?) as f64 / TICKS_PER_SECOND)
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Server::Embedded(child) = &mut self.server {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Is the embedded server: tells its address and serves until it is killed.
pub(crate) fn serve() -> Result<(), anyhow::Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let server = ApiServer::new(Options::default());
        let mut out = std::io::stdout();
        writeln!(out, "http://{}", listener.local_addr()?)?;
        out.flush()?;
        Ok(k8s_apiserver::serve(server, listener, std::future::pending()).await?)
    })
}
