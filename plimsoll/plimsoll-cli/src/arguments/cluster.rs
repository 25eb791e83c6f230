//! Which cluster a command line names.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Where a cluster is.
#[derive(Debug, Clone, Default, Args)]
pub struct ClusterArguments {
    /// Kubeconfig of the cluster; without it, KUBECONFIG, ~/.kube/config or the pod's own account
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true)]
    pub context: Option<String>,
}

impl ClusterArguments {
    /// Whether the command line names a cluster.
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// A client for the cluster.
    ///
    /// # Errors
    ///
    /// When there is no usable configuration.
    pub async fn client(&self) -> Result<Client, anyhow::Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path)
                    .with_context(|| format!("failed to read kubeconfig `{}`", path.display()))?;
                Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .with_context(|| format!("failed to use kubeconfig `{}`", path.display()))?
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer()
                .await
                .context("no cluster is configured; name one with --kubeconfig FILE")?,
        };
        // What fails is tried again by the plan, which says so; the client's own retries are silent.
        config.default_retry = false;
        Client::try_from(config).context("failed to set up the client")
    }
}
