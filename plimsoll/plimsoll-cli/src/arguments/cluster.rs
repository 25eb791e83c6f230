//! Which cluster a command line names.

mod kubeconfig;
mod requests;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::ClientBuilder;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use plimsoll_api::duration;
use tower::layer::layer_fn;

pub use requests::UnansweredRequest;
use requests::{Bounded, ResponseBody};

/// What every container of a pod finds in its environment.
const IN_POD: &str = "KUBERNETES_SERVICE_HOST";

/// Where a cluster is.
#[derive(Debug, Clone, Args)]
pub struct ClusterArguments {
    /// Kubeconfig of the cluster; without it, KUBECONFIG, ~/.kube/config or the pod's own account
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// How long the API server may take to answer a request
    // As long as kube-apiserver itself allows for a request that is not a watch.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1m",
        value_parser = duration::parse,
        global = true
    )]
    pub request_timeout: Duration,
}

impl ClusterArguments {
    /// Whether the command line names a cluster.
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Whether there is a cluster where kubectl looks for one: in a kubeconfig, or around the pod. A
    /// kubeconfig that cannot be read names one, too; which one is not known then.
    pub fn is_configured(&self) -> bool {
        match kubeconfig::find(self.kubeconfig.as_deref()) {
            Ok(Some(found)) => found.has_context(),
            Ok(None) => std::env::var_os(IN_POD).is_some(),
            Err(_) => true,
        }
    }

    /// Which cluster it is, for people: the context of the kubeconfig.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be read.
    pub fn described(&self) -> Result<String, anyhow::Error> {
        let found = kubeconfig::find(self.kubeconfig.as_deref())?;
        let current = found.and_then(|it| it.kubeconfig.current_context);
        let name = self.context.clone().or(current);
        Ok(name.unwrap_or_else(|| "the pod's own account".to_owned()))
    }

    /// A client for the single requests of a command, whose answers are limited in time and size.
    ///
    /// # Errors
    ///
    /// When there is no usable configuration.
    pub async fn client(&self, command: &str) -> Result<Client, anyhow::Error> {
        self.client_reading(command, ResponseBody::Whole).await
    }

    /// A client that also watches: the answer to a watch has to begin in time, but may go on for ever.
    ///
    /// # Errors
    ///
    /// When there is no usable configuration.
    pub async fn watching_client(&self, command: &str) -> Result<Client, anyhow::Error> {
        self.client_reading(command, ResponseBody::Streamed).await
    }

    async fn client_reading(
        &self,
        command: &str,
        body: ResponseBody,
    ) -> Result<Client, anyhow::Error> {
        let mut config = self.config().await?;
        // What fails is tried again by the plan, which says so; the client's own retries are silent.
        config.default_retry = false;
        config.headers.push((USER_AGENT, user_agent(command)?));
        let (url, limit) = (config.cluster_url.clone(), self.request_timeout);
        let builder = ClientBuilder::try_from(config).context("failed to set up the client")?;
        // What a controller creates is its own affair.
        let shows_warnings = !matches!(command, "run" | "sandbox");
        let layer =
            layer_fn(move |inner| Bounded { inner, url: url.clone(), limit, body, shows_warnings });
        Ok(builder.with_layer(&layer).build())
    }

    async fn config(&self) -> Result<Config, anyhow::Error> {
        let Some(found) = kubeconfig::find(self.kubeconfig.as_deref())? else {
            anyhow::ensure!(
                self.context.is_none(),
                "--context: there is no kubeconfig; name one with --kubeconfig FILE"
            );
            anyhow::ensure!(
                std::env::var_os(IN_POD).is_some(),
                "no cluster is configured; name one with --kubeconfig FILE"
            );
            return Config::incluster().context("failed to use the pod's own account");
        };
        found.check_context(self.context.as_deref())?;
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        Config::from_custom_kubeconfig(found.kubeconfig, &options)
            .await
            .with_context(|| format!("failed to use kubeconfig {}", found.origin))
    }
}

/// What requests of a command say of their sender: audit logs and flow control tell clients apart by
/// this.
fn user_agent(command: &str) -> Result<HeaderValue, anyhow::Error> {
    let agent = format!("plimsoll/{} ({command})", env!("CARGO_PKG_VERSION"));
    HeaderValue::from_str(&agent).context("failed to set the user agent")
}

#[cfg(test)]
mod tests {
    //! What a server sees of a request.

    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn requests_name_the_program_its_version_and_the_command() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: \"http://{address}\"}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             users: [{{name: a, user: {{}}}}]\n"
        );
        std::fs::write(&path, kubeconfig).unwrap();
        let seen = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let (mut request, mut part) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"\r\n\r\n") {
                let length = connection.read(&mut part).unwrap();
                request.extend_from_slice(&part[..length]);
            }
            String::from_utf8(request).unwrap()
        });
        let request_timeout = Duration::from_secs(60);
        let cluster = ClusterArguments { kubeconfig: Some(path), context: None, request_timeout };
        let client = cluster.client("run").await.unwrap();
        // The server reads the request and closes the connection.
        client.apiserver_version().await.unwrap_err();
        let expected = concat!("user-agent: plimsoll/", env!("CARGO_PKG_VERSION"), " (run)\r\n");
        assert!(seen.join().unwrap().contains(expected));
    }
}
