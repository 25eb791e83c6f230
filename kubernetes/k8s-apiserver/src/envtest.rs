//! Programs that stand where test suites expect `etcd` and `kube-apiserver`.
//!
//! controller-runtime's envtest, and what is modelled on it in other languages, starts both programs
//! from one directory (`KUBEBUILDER_ASSETS`), with flags for ports and certificates. A [`Program`]
//! takes the same flags. The API server is the embedded one; etcd only says that it is healthy, and
//! so the cluster ends with its API server.
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::Path;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::access::options::{AccessOptions, Authorization, StaticToken};
use crate::listen::{ServeError, TlsCertificates, serve, serve_tls_with};
use crate::semantics::settings::{AdmissionPlugin, ClusterSettings};
use crate::server::{ApiServer, Options};
use crate::user::UserInfo;

/// The flag of etcd that says where it listens.
const CLIENT_URLS: &str = "listen-client-urls";

/// The listed flags of etcd: suites look for some before they use them.
const ETCD_FLAGS: [&str; 4] = ["advertise-client-urls", "data-dir", CLIENT_URLS, "unsafe-no-fsync"];

/// The listed flags of kube-apiserver: those that have an effect.
const APISERVER_FLAGS: [&str; 10] = [
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "disable-admission-plugins",
    "secure-port",
    "service-cluster-ip-range",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
];

/// A program of a control plane that can be stood in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `etcd`: answers health checks, stores nothing.
    Etcd,
    /// `kube-apiserver`: a new cluster in memory.
    KubeApiserver,
}

/// Why a program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A file that a flag names could not be read.
    #[error("could not read `{path}`")]
    File {
        /// The path as the flag has it.
        path: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// An address could not be listened on.
    #[error("could not listen on `{address}`; give a free port of an address of this machine")]
    Address {
        /// The address and port.
        address: String,
        /// The error of the socket.
        source: io::Error,
    },
    /// A URL to listen at is not of HTTP.
    #[error("--{CLIENT_URLS} has `{0}`, which is not of the form http://ADDRESS:PORT")]
    Url(String),
    /// The listener failed.
    #[error("the server failed")]
    Serve(#[from] ServeError),
}

impl Program {
    /// Both programs.
    pub const ALL: [Self; 2] = [Self::Etcd, Self::KubeApiserver];

    /// The name of the program's file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
        }
    }

    /// What the program prints for `--help` and `--version`, none if the flags have neither.
    pub fn information(self, flags: &[String]) -> Option<String> {
        let has = |wanted: &[&str]| flags.iter().any(|flag| wanted.contains(&flag.as_str()));
        if has(&["--help", "-h"]) {
            let listed: &[&str] = match self {
                Self::Etcd => &ETCD_FLAGS,
                Self::KubeApiserver => &APISERVER_FLAGS,
            };
            let lines: String =
                listed.iter().map(|flag| format!("      --{flag} string\n")).collect();
            let name = self.name();
            return Some(format!(
                "{name}, embedded. Other flags of {name} are accepted and have no effect.\n\n\
                 Flags:\n{lines}"
            ));
        }
        has(&["--version"]).then(|| match self {
            Self::Etcd => "etcd Version: embedded\n".to_owned(),
            Self::KubeApiserver => {
                format!("Kubernetes {}\n", k8s_schema::builtin::kubernetes_version())
            }
        })
    }

    /// Runs the program until `shutdown` completes. The keys of a new cluster are random.
    ///
    /// # Errors
    /// When a file that a flag names cannot be used, or an address cannot be listened on.
    pub async fn run(
        self,
        flags: &[String],
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ProgramError> {
        let flags = Flags::parse(flags);
        match self {
            Self::Etcd => etcd(&flags, shutdown).await,
            Self::KubeApiserver => kube_apiserver(&flags, shutdown).await,
        }
    }
}

async fn etcd(
    flags: &Flags,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ProgramError> {
    let urls = flags.get(CLIENT_URLS).unwrap_or("http://127.0.0.1:2379");
    let mut listeners = Vec::new();
    for url in urls.split(',') {
        let address = url.strip_prefix("http://").ok_or_else(|| ProgramError::Url(url.into()))?;
        listeners.push(bind(address.trim_end_matches('/')).await?);
    }
    let service =
        tower::service_fn(async |request: Request<_>| Ok::<_, Infallible>(health(&request)));
    let mut servers = JoinSet::new();
    for listener in listeners {
        servers.spawn(serve(service, listener, std::future::pending()));
    }
    let mut shutdown = std::pin::pin!(shutdown.fuse());
    tokio::select! {
        () = &mut shutdown => Ok(()),
        Some(Ok(Err(error))) = servers.join_next() => Err(ServeError::from(error).into()),
    }
}

fn health<B>(request: &Request<B>) -> Response<Full<Bytes>> {
    let (status, body) = match request.uri().path() {
        "/health" => (StatusCode::OK, r#"{"health":"true","reason":""}"#),
        _ => (StatusCode::NOT_FOUND, "nothing is stored here: the API server has its own memory\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response
}

async fn kube_apiserver(
    flags: &Flags,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ProgramError> {
    let access = AccessOptions {
        // Whatever one mode allows is allowed.
        authorization: match flags.get("authorization-mode") {
            Some(modes) if modes.split(',').any(|mode| mode == "AlwaysAllow") => {
                Authorization::AlwaysAllow
            }
            _ => Authorization::Rbac,
        },
        tokens: match flags.get("token-auth-file") {
            Some(path) => static_tokens(&read(path)?),
            None => Vec::new(),
        },
        ..AccessOptions::default()
    };
    let disabled = flags.get("disable-admission-plugins").unwrap_or_default();
    let settings = ClusterSettings {
        // The first range is that of IPv4, or of IPv6 alone, which no service here has.
        service_range: flags
            .get("service-cluster-ip-range")
            .and_then(|ranges| ranges.split(',').find_map(|range| range.parse().ok()))
            .unwrap_or_default(),
        disabled_plugins: disabled.split(',').filter_map(AdmissionPlugin::named).collect(),
        empty_namespaces: true,
    };
    let server = ApiServer::new(Options { access, settings, ..Options::default() });
    let clients = flags.get("client-ca-file").map(read).transpose()?;
    let serving = flags.serving()?;
    let certificates = TlsCertificates {
        serving: serving.as_ref().map(|(chain, key)| (chain.as_bytes(), key.as_bytes())),
        client_authorities: clients.as_deref().map(str::as_bytes),
    };
    let host = flags.get("bind-address").unwrap_or("127.0.0.1");
    let port = flags.get("secure-port").unwrap_or("6443");
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let listener = bind(&format!("{host}:{port}")).await?;
    Ok(serve_tls_with(server, listener, certificates, shutdown).await?)
}

async fn bind(address: &str) -> Result<TcpListener, ProgramError> {
    let failed = |source| ProgramError::Address { address: address.to_owned(), source };
    TcpListener::bind(address).await.map_err(failed)
}

fn read(path: &str) -> Result<String, ProgramError> {
    let failed = |source| ProgramError::File { path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

/// The tokens of a file of lines `TOKEN,NAME,UID,"GROUP,GROUP"`; lines without a name are none.
///
/// Upstream: k8s.io/apiserver/pkg/authentication/token/tokenfile/tokenfile.go: NewCSV
fn static_tokens(text: &str) -> Vec<StaticToken> {
    let token = |line: &str| {
        let mut fields = line.splitn(4, ',').map(|field| field.trim().trim_matches('"'));
        let (token, name) = (fields.next()?, fields.next()?);
        let uid = fields.next().unwrap_or_default().to_owned();
        let groups = fields.next().unwrap_or_default();
        let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
        let user = UserInfo { uid, ..UserInfo::new(name, groups) };
        Some(StaticToken { token: token.to_owned(), user })
    };
    text.lines().filter_map(token).collect()
}

/// Flags by name; of one that was given twice, the last.
#[derive(Debug, Default)]
struct Flags(BTreeMap<String, String>);

impl Flags {
    /// Parses `--NAME=VALUE` and `--NAME VALUE`.
    fn parse(arguments: &[String]) -> Self {
        let mut flags = BTreeMap::new();
        let mut arguments = arguments.iter().peekable();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--") else {
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let value = arguments.next_if(|next| !next.starts_with('-'));
                    (flag, value.cloned().unwrap_or_default())
                }
            };
            flags.insert(name.to_owned(), value);
        }
        Self(flags)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The serving certificate and its key: of the files that flags name, or of those that are in
    /// the directory of certificates. None if there are none: the cluster's authority then issues
    /// one.
    fn serving(&self) -> Result<Option<(String, String)>, ProgramError> {
        if let (Some(chain), Some(key)) =
            (self.get("tls-cert-file"), self.get("tls-private-key-file"))
        {
            return Ok(Some((read(chain)?, read(key)?)));
        }
        let Some(directory) = self.get("cert-dir") else {
            return Ok(None);
        };
        let [chain, key] =
            ["apiserver.crt", "apiserver.key"].map(|name| format!("{directory}/{name}"));
        if !Path::new(&chain).exists() || !Path::new(&key).exists() {
            return Ok(None);
        }
        Ok(Some((read(&chain)?, read(&key)?)))
    }
}

#[cfg(test)]
mod tests;
