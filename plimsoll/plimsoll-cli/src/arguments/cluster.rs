//! Which cluster a command line names.

mod kubeconfig;
mod requests;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use kube::client::ClientBuilder;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use plimsoll_simulation::duration;
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

    /// A client for single requests, whose answers are limited in time and size.
    ///
    /// # Errors
    ///
    /// When there is no usable configuration.
    pub async fn client(&self) -> Result<Client, anyhow::Error> {
        self.client_reading(ResponseBody::Whole).await
    }

    /// A client that also watches: an answer has to begin in time, but may go on for ever.
    ///
    /// # Errors
    ///
    /// When there is no usable configuration.
    pub async fn watching_client(&self) -> Result<Client, anyhow::Error> {
        self.client_reading(ResponseBody::Streamed).await
    }

    async fn client_reading(&self, body: ResponseBody) -> Result<Client, anyhow::Error> {
        let mut config = self.config().await?;
        // What fails is tried again by the plan, which says so; the client's own retries are silent.
        config.default_retry = false;
        let (url, limit) = (config.cluster_url.clone(), self.request_timeout);
        let builder = ClientBuilder::try_from(config).context("failed to set up the client")?;
        let layer = layer_fn(move |inner| Bounded { inner, url: url.clone(), limit, body });
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
