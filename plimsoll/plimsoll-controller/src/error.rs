//! Errors that end the controller. What a cluster rejects of a release is progress, not an error.

use plimsoll_plan::reconciler::refusal::ReleaseRefusal;

/// Why a controller ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Discovery failed.
    #[error("failed to discover what the API server serves")]
    Discover {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The FeatureGate could not be read.
    #[error("failed to read FeatureGate \"cluster\"")]
    ReadFeatureGate {
        /// The error of the client.
        source: kube::Error,
    },
    /// The Operators could not be read.
    #[error("failed to list Operators")]
    ReadOperators {
        /// The error of the client.
        source: kube::Error,
    },
    /// The MaintenanceWindows could not be read.
    #[error("failed to list MaintenanceWindows")]
    ReadWindows {
        /// The error of the client.
        source: kube::Error,
    },
    /// A CustomResourceDefinition of ours could not be installed.
    #[error("failed to install CustomResourceDefinition \"{name}\"")]
    InstallCrd {
        /// Its name.
        name: String,
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// An admission policy of ours could not be installed.
    #[error("failed to install the admission policy \"{name}\"")]
    InstallPolicy {
        /// Its name, which its binding has too.
        name: String,
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// A class of Actions of ours could not be installed.
    #[error("failed to install ActionClass \"{name}\"")]
    InstallClass {
        /// Its name.
        name: String,
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The ClusterVersion could not be read.
    #[error("failed to read ClusterVersion \"version\"")]
    ReadClusterVersion {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The spec of the ClusterVersion cannot be read, and no earlier one is recorded.
    #[error(
        "the spec of ClusterVersion \"version\" cannot be read: {message}; nothing is reconciled until \
         it is corrected"
    )]
    UnreadableSpec {
        /// What is wrong, and where.
        message: String,
    },
    /// The ClusterVersion could not be created.
    #[error("failed to create ClusterVersion \"version\"")]
    CreateClusterVersion {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The ReleaseProgress object could not be read.
    #[error("failed to read ReleaseProgress \"version\"")]
    ReadProgress {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The ReleaseProgress object could not be created.
    #[error("failed to create ReleaseProgress \"version\"")]
    WriteProgress {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The Secret with the key of OperatorRevisions could not be read or made.
    #[error(
        "failed to read or make the key of OperatorRevisions, Secret kube-system/plimsoll-revisions"
    )]
    RevisionKey {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The Secret with the key of OperatorRevisions has no usable key.
    #[error(
        "the Secret kube-system/plimsoll-revisions has no usable key: {problem}; restore it from a backup, or \
         delete it: then a key is made, and OperatorRevisions are signed with it whose Operator names them in its \
         status"
    )]
    UnusableRevisionKey {
        /// What is wrong, as a clause.
        problem: String,
    },
    /// OperatorRevisions could not be released for their definition, which is being deleted.
    #[error(
        "failed to remove the finalizers of OperatorRevisions, whose definition is being deleted"
    )]
    ReleaseRevisions {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The operating system provides no random numbers for a key.
    #[error("the operating system provides no random numbers for a key")]
    Random,
    /// A webhook cannot listen.
    #[error(
        "failed to listen on {address} for reviews; name another address with --{webhook}-webhook"
    )]
    Listen {
        /// The name of the webhook.
        webhook: &'static str,
        /// Where it was to listen.
        address: std::net::SocketAddr,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate of a webhook cannot be made or used.
    #[error("failed to make the certificate of a webhook: {message}")]
    Certificate {
        /// The error of the TLS library.
        message: String,
    },
    /// The Secret of a webhook or its configuration could not be read or written.
    #[error("failed to set up the {webhook} webhook in the cluster")]
    Webhook {
        /// The name of the webhook.
        webhook: &'static str,
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// Queries cannot be listened for.
    #[error("failed to listen on {address} for queries; name another address with --resolver")]
    ListenForQueries {
        /// Where it was to listen.
        address: std::net::SocketAddr,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The Secret with the certificate for queries could not be read or written.
    #[error(
        "failed to read or make the certificate for queries, Secret kube-system/plimsoll-resolver"
    )]
    ServeQueries {
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// An object could not be read, or a dry run of a step was not answered.
    #[error("failed to dry-run a change of {object}")]
    DryRun {
        /// The object, or the kind.
        object: String,
        /// The error of the client.
        #[source]
        source: kube::Error,
    },
    /// The release is not begun: it seems to be a mistake.
    #[error("{0}; start with --force-release if that is meant")]
    Refused(ReleaseRefusal),
    /// Another process took the lease, or it ran out while the API server was away.
    #[error("lost the lease \"kube-system/plimsoll\"; another controller may be at work")]
    LeaseLost,
    /// ReportedEvents to stop before the work had begun.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Returns whether a retry cannot help: the server rejects the request for good, or the
    /// controller was stopped.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Discover { source }
            | Self::InstallCrd { source, .. }
            | Self::InstallPolicy { source, .. }
            | Self::InstallClass { source, .. }
            | Self::ReadFeatureGate { source }
            | Self::ReadOperators { source }
            | Self::ReadWindows { source }
            | Self::ReadClusterVersion { source }
            | Self::CreateClusterVersion { source }
            | Self::ReadProgress { source }
            | Self::RevisionKey { source }
            | Self::Webhook { source, .. }
            | Self::ServeQueries { source }
            | Self::WriteProgress { source }
            | Self::DryRun { source, .. } => match source {
                kube::Error::Api(status) => matches!(status.code, 400 | 401 | 403 | 405 | 422),
                _ => false,
            },
            // Another client may have changed one meanwhile, which is answered with 422.
            Self::ReleaseRevisions { source } => {
                matches!(source, kube::Error::Api(status) if matches!(status.code, 401 | 403))
            }
            Self::UnreadableSpec { .. } | Self::UnusableRevisionKey { .. } => false,
            Self::Listen { .. }
            | Self::ListenForQueries { .. }
            | Self::Certificate { .. }
            | Self::Random
            | Self::Refused(_)
            | Self::LeaseLost
            | Self::Stopped => true,
        }
    }
}
