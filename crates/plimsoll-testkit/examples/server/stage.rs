//! A server as a process of its own, and a client of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use kube::client::ClientBuilder;
use kube::{Client, Config};
use plimsoll_apiserver::{ApiServer, Options};
use plimsoll_testkit::{ClusterKind, TestCluster};

/// The word that makes this program be the embedded server.
pub(crate) const SERVE: &str = "serve";

/// A server under load.
pub(crate) struct Stage {
    pub(crate) kind: ClusterKind,
    pub(crate) client: Client,
    server: Server,
}

enum Server {
    Embedded(Child),
    Real(#[expect(dead_code, reason = "it ends when it is dropped")] TestCluster),
}

impl Stage {
    pub(crate) async fn start(kind: ClusterKind) -> Result<Self, anyhow::Error> {
        match kind {
            ClusterKind::Embedded => Self::embedded(),
            ClusterKind::ControlPlane => {
                let cluster = TestCluster::control_plane().await?;
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
        Ok(plimsoll_apiserver::serve(server, listener, std::future::pending()).await?)
    })
}
