//! The one list of reasons: why something is as it is, or why nothing happened.
//!
//! Conditions, events, metrics and exit codes all render these names, so they are API: the names
//! of CV-10 to CV-18 are kept to the letter, since `oc`, alerts and CI parse them.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why something is as it is. Rendered by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason there is, in the order of this list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The reason as conditions and events spell it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

reasons! {
    /// All is well.
    AsExpected,
    /// Several failures at once, listed in the message.
    MultipleErrors,
    /// The object or something it needs is not there.
    UpdatePayloadResourceNotFound,
    /// Another client changed the object at the same time.
    UpdatePayloadResourceConflict,
    /// The API server does not answer.
    UpdatePayloadClusterDown,
    /// The API server reports an internal error.
    UpdatePayloadClusterError,
    /// The API server refuses the object as invalid.
    UpdatePayloadResourceInvalid,
    /// The API server does not know us.
    UpdatePayloadClusterUnauthorized,
    /// The API server does not allow the change.
    UpdatePayloadResourceForbidden,
    /// The API server has too much to do.
    UpdatePayloadClusterOverloaded,
    /// The API server does not serve the kind.
    UpdatePayloadResourceTypeMissing,
    /// Any other failure to apply a manifest.
    UpdatePayloadFailed,
    /// The payload contradicts itself.
    UpdatePayloadIntegrity,
    /// The payload could not be fetched.
    UpdatePayloadRetrievalFailed,
    /// A precondition of the update does not hold.
    UpgradePreconditionCheckFailed,
    /// The namespace of the object is not there yet.
    NamespaceMissing,
    /// The namespace of the object is being deleted.
    NamespaceTerminating,
    /// An object that this one needs has not been applied yet.
    PrerequisitePending,
    /// A ClusterOperator manifest names no versions to wait for.
    ClusterOperatorNoVersions,
    /// A ClusterOperator is not available.
    ClusterOperatorNotAvailable,
    /// Several ClusterOperators are not available.
    ClusterOperatorsNotAvailable,
    /// A ClusterOperator is degraded.
    ClusterOperatorDegraded,
    /// Several ClusterOperators are degraded.
    ClusterOperatorsDegraded,
    /// A ClusterOperator has not reported the expected versions yet.
    ClusterOperatorUpdating,
    /// Several ClusterOperators have not reported the expected versions yet.
    ClusterOperatorsUpdating,
    /// A ClusterOperator takes longer than usual.
    SlowClusterOperator,
    /// A workload takes longer than usual.
    SlowWorkload,
    /// A CustomResourceDefinition is not served yet.
    CustomResourceDefinitionNotEstablished,
    /// The objects of a CustomResourceDefinition are being rewritten in its storage version.
    StorageVersionMigrating,
    /// A workload is rolling out.
    WorkloadProgressing,
    /// A workload is not available and makes no progress.
    WorkloadNotAvailable,
    /// A workload cannot roll out.
    WorkloadNotProgressing,
    /// A Job is still running.
    JobRunning,
    /// A Job failed.
    JobFailed,
    /// Another client is deleting the object.
    ObjectTerminating,
    /// The payload is loaded and accepted.
    PayloadLoaded,
    /// The payload is being fetched, or could not be.
    RetrievePayload,
    /// The payload could not be loaded.
    LoadPayload,
    /// The payload's version is not the one requested.
    VerifyPayloadVersion,
    /// The preconditions of the update do not hold.
    PreconditionChecks,
    /// The ClusterVersion's spec is invalid.
    InvalidClusterVersion,
    /// Capabilities are enabled that were not requested.
    CapabilitiesImplicitlyEnabled,
    /// An update made a capability necessary that was not requested.
    CapabilityImplied,
    /// The installed definition of ClusterVersion does not let its status name a capability.
    CapabilityNameRefused,
    /// No update channel is configured.
    NoChannel,
    /// The payload store cannot be read.
    RemoteFailed,
    /// The channel does not have the release that is applied.
    VersionNotFound,
    /// The version asked for is older, and not the one before.
    LowDesiredVersion,
    /// The version that the cluster is at is not a semantic version.
    InvalidCurrentVersion,
    /// The version asked for is not a semantic version.
    InvalidDesiredVersion,
    /// The version asked for is another major version.
    MajorVersionUpdate,
    /// The version asked for skips a minor version.
    MultipleMinorVersionsUpdate,
    /// Another patch is asked for in the midst of a minor update.
    MinorVersionClusterUpdateInProgress,
    /// Another patch is asked for in the midst of a major update.
    MajorVersionClusterUpdateInProgress,
    /// The release of another minor version asked for deletes what is gone already.
    ResourceAlreadyDeleted,
    /// The release asked for has next to nothing of what the cluster consists of.
    OtherProduct,
    /// The requested release is not a known update.
    UnknownUpdate,
    /// An administrator has to acknowledge something first.
    AdminAckRequired,
    /// A gate for administrators has a malformed name.
    AdminAckConfigMapGateNameError,
    /// A gate for administrators has no text.
    AdminAckConfigMapGateValueError,
    /// The ConfigMap with the gates for administrators is missing.
    UnableToAccessAdminGatesConfigMap,
    /// The ConfigMap with the acknowledgements is missing.
    UnableToAccessAdminAcksConfigMap,
    /// The update is paused before a run level.
    UpdatePaused,
    /// The update goes on after a pause.
    UpdateResumed,
    /// An update began.
    UpdateStarted,
    /// An update was completed.
    UpdateCompleted,
    /// ClusterVersion overrides are set.
    ClusterVersionOverridesSet,
    /// What failed does not any more.
    FailureResolved,
    /// The ClusterVersion is in order again.
    ClusterVersionValid,
    /// Something objects to another minor version.
    MinorUpdatesBlocked,
    /// Nothing objects to another minor version any more.
    MinorUpdatesAllowed,
    /// Available updates are known again.
    UpdatesRetrieved,
    /// A ClusterOperator has reached the release.
    ClusterOperatorUpdated,
    /// Another client changed or deleted an object, and the change was reverted.
    DriftRepaired,
    /// A capability is enabled because it was asked for.
    CapabilityEnabled,
    /// This controller works from now on.
    LeaderElected,
    /// A newer version of this program has installed a definition that this one leaves as it is.
    DefinitionNewer,
    /// The cluster's feature set or its feature gates changed.
    FeaturesChanged,
    /// An administrator took an object out of management.
    OverrideInForce,
    /// An override expired: its object is managed again.
    OverrideExpired,
    /// An override was removed: its object is managed again.
    OverrideRemoved,
    /// The annotation with the terms of overrides cannot be read, or does not fit the overrides.
    OverrideTermsInvalid,
    /// An update is in progress.
    UpdateInProgress,
    /// ClusterOperators object to a minor update.
    ClusterOperatorsNotUpgradeable,
    /// Installed Operators do not run on another minor version, or need what a release removes.
    IncompatibleOperatorsInstalled,
    /// What installed Operators require of the platform may not be read.
    IncompatibleOperatorsUnknown,
    /// Objects that are to be deleted are still there.
    ResourceDeletesInProgress,
    /// An object was asked to go.
    ResourceDeletionRequested,
    /// An object that was asked to go is going.
    ResourceDeletionOngoing,
    /// An object that was asked to go is gone.
    ResourceDeletionCompleted,
    /// The API server refuses to delete an object.
    ResourceDeletionRefused,
    /// An object that is going does not go.
    ResourceDeletionStuck,
    /// An object that was deleted is there again.
    ResourceReappeared,
    /// Several reasons at once.
    MultipleReasons,
    /// No release is configured.
    NoDesiredImage,
    /// The version of an Operator is neither a version nor a range.
    InvalidVersionRange,
    /// No catalog has the package of an Operator.
    PackageNotFound,
    /// The catalog that an Operator names does not exist.
    CatalogNotFound,
    /// No catalog that is served has the package, and some are not served.
    CatalogUnavailable,
    /// Several catalogs of one weight have the package.
    AmbiguousCatalog,
    /// The package has no such channel, or one that nothing can be taken from.
    ChannelNotFound,
    /// No version of the package is in the requested range.
    NoMatchingVersion,
    /// The requested version is skipped by a later one.
    VersionSkipped,
    /// No upgrade leads to the requested version.
    NoUpgradePath,
    /// What would be installed does not fit the cluster.
    ClusterIncompatible,
    /// What the installed bundle requires is not there.
    UnmetDependency,
    /// An installation waits for what it requires.
    ConstraintsUnmet,
    /// An upgrade waits for what it requires, or for what it would break.
    UpgradeBlocked,
    /// Another Operator owns what this one provides.
    Conflict,
    /// The spec cannot be read.
    InvalidSpec,
    /// The annotation that names a change set has another form.
    InvalidChangeSet,
    /// Members of a change set are missing.
    ChangeSetIncomplete,
    /// Another member of the change set cannot move, or comes first.
    ChangeSetBlocked,
    /// The content of a bundle can be installed.
    UnpackSuccessful,
    /// The content of a bundle cannot be read or installed.
    UnpackFailed,
    /// A bundle is installed.
    InstallationSucceeded,
    /// A rollout stopped before its end.
    InstallationFailed,
    /// A workload is deleted and created again, as it cannot be changed.
    WorkloadReplaced,
    /// A bundle is being rolled out.
    RollingOut,
    /// No bundle is installed yet.
    NotInstalled,
    /// A person has paused the Operator.
    Paused,
    /// The Operator is being deleted.
    Deleting,
    /// Objects of the kinds of an Operator that is being deleted do not go.
    OperandsStuck,
    /// An Operator goes because the definition of Operators was deleted.
    DefinitionDeleted,
    /// What an Operator that is being deleted has, or what is in its namespace, cannot be read.
    ContentUnknown,
    /// The bundle, its channel or its package is deprecated.
    Deprecated,
    /// An Operator that is named does not exist.
    OperatorNotFound,
    /// An Operator is not deleted, as others depend on it.
    DependedUpon,
    /// An Operator is not deleted, as objects of its kinds exist.
    WorkloadsRunning,
    /// An Operator was deleted.
    OperatorDeleted,
    /// An Operator was installed because another one needs it.
    DependencyCreated,
    /// There is no such class of Actions, or no controller serves it.
    ActionClassNotFound,
    /// An Action has attributes that its class does not know, or lacks some that it needs.
    InvalidAction,
    /// No policy grants an Action.
    PolicyDenied,
    /// A precondition of an Action does not hold.
    PreconditionFailed,
    /// An Action was cancelled before all of its plan was done.
    ActionCancelled,
    /// An Action was not done in its time.
    DeadlineExceeded,
    /// The plan of an Action waits for an approval.
    ApprovalRequired,
    /// The plan of an Action was approved by one of those who have to.
    PlanApproved,
    /// The plan of an Action was rejected by one of those who could have approved it.
    PlanRejected,
    /// The plan of an Action is not the one that was approved.
    PlanChanged,
    /// An Action waits for another one that changes the same Operators.
    WaitingForAction,
    /// An Action waits for catalogs and Operators to be read.
    InventoryUnavailable,
    /// The plan of an Action is executed, or one of its attempts is.
    ActionRunning,
    /// An Action was done.
    ActionSucceeded,
    /// Only the plan of an Action was made.
    DryRun,
    /// Too many attempts of a RetryAction failed.
    BackoffLimitExceeded,
    /// An ActionClass can be served, an ActionPolicy do what it says, or a MaintenanceWindow be read.
    Accepted,
    /// An ActionClass cannot be served: its schema, attributes or defaults contradict each other.
    InvalidActionClass,
    /// A policy of Actions cannot do what it says.
    InvalidActionPolicy,
    /// A MaintenanceWindow cannot be read: it counts as closed.
    InvalidMaintenanceWindow,
    /// An Action was deleted while its plan was executed.
    ActionDeleted,
    /// Whether changes of an Action were made is not known: the cluster was restored to an earlier state.
    OutcomeUnknown,
    /// Times of a schedule passed without a controller that acted on them.
    ScheduleMissed,
    /// No Action could be made for a time of a schedule within the deadline to start.
    StartingDeadlineExceeded,
    /// A MaintenanceWindow is not open: no Action was made for a time of a schedule, or an update waits.
    MaintenanceWindowClosed,
    /// The MaintenanceWindows cannot be listed: whether one is open is not known.
    MaintenanceWindowsUnknown,
    /// No Action was made for a time of a schedule, since the one before had not ended.
    ActionAlreadyActive,
    /// The clock went back behind the time of a schedule that was acted on last.
    ClockSetBack,
    /// The filter of an EventAction could not be evaluated for a change, so it made no Action.
    FilterFailed,
    /// An EventAction made no Action for a change that its own Actions have led to.
    EventActionCircle,
    /// An EventAction made no Action for a change, since it has made as many as it may.
    RateLimited,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
