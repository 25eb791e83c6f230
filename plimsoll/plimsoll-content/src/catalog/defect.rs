//! The codes of what is wrong with a catalog or a bundle.

use crate::diagnostic::{Diagnostic, codes};

codes! {
    /// What a defect is about. Codes are stable: scripts may rely on them.
    DefectCode {
    /// Text that is neither JSON nor YAML, or not of the form that its schema has.
    Syntax = "syntax", Error;
    /// A key that occurs twice in a document; the last one counts.
    DuplicateKey = "duplicate-key", Warning;
    /// A document, a file or a catalog that exceeds what is read.
    TooLarge = "too-large", Error;
    /// A document without a schema.
    NoSchema = "no-schema", Error;
    /// A document without the name of its package, or without its own.
    NoName = "no-name", Error;
    /// A package whose name is not a DNS label.
    PackageName = "package-name", Error;
    /// Two documents for the same package, channel, bundle or deprecation.
    Duplicate = "duplicate", Error;
    /// Channels or bundles of a package that has no document of its own.
    NoPackage = "no-package", Error;
    /// A default channel that does not exist, or none.
    DefaultChannel = "default-channel", Error;
    /// A package without channels.
    NoChannels = "no-channels", Error;
    /// A channel whose entries have no order.
    ChannelOrder = "channel-order", Error;
    /// Entries that cannot be reached from a channel's head.
    Stranded = "stranded", Warning;
    /// Entries besides a channel's head from which no update leads on.
    NoUpdate = "no-update", Warning;
    /// An entry whose bundle the package does not have.
    NoBundle = "no-bundle", Error;
    /// A skip range that cannot be read; the entry is taken as if it had none.
    SkipRange = "skip-range", Error;
    /// A bundle that no channel has.
    NoChannel = "no-channel", Warning;
    /// A bundle whose version is missing or not semantic.
    Version = "version", Error;
    /// Two bundles of one package with the same version.
    SameVersion = "same-version", Error;
    /// A property that cannot be read, or contradicts its bundle.
    Property = "property", Error;
    /// A dependency that cannot be read.
    Dependency = "dependency", Error;
    /// A range that surely means something else than its author thought.
    MisleadingRange = "surprising-range", Warning;
    /// A bundle without an image or objects.
    NoImage = "no-image", Warning;
    /// A deprecation of something that does not exist, or without a message.
    Deprecation = "deprecation", Error;
    /// A manifest or metadata file of a bundle directory that is missing or malformed.
    BundleFile = "bundle-file", Error;
    /// An annotation of a bundle directory that is missing or malformed.
    BundleAnnotation = "bundle-annotation", Error;
    /// An API that a bundle says it owns without bringing its definition.
    OwnedApi = "owned-api", Error;
    /// Something of a bundle directory that works, but that its author should check.
    BundleAdvice = "bundle-advice", Warning;
    /// A deployment of a bundle that cannot be created.
    BundleDeployment = "bundle-deployment", Error;
    /// A webhook of a bundle that cannot be served, or may not be.
    BundleWebhook = "bundle-webhook", Error;
    /// A definition of a bundle that cannot be installed.
    BundleDefinition = "bundle-definition", Error;
    /// A kind of objects that a bundle may not bring.
    BundleKind = "bundle-kind", Error;
    /// Namespaces that an operator is to watch, or to run in, and cannot.
    TargetNamespaces = "target-namespaces", Error;
    /// A configuration of an Operator that its bundle does not allow.
    BundleConfig = "bundle-config", Error;
    }
}

/// The codes of defects with which a package is invalid as a whole.
const INVALIDATING: [DefectCode; 5] = [
    DefectCode::PackageName,
    DefectCode::NoPackage,
    DefectCode::NoChannels,
    DefectCode::DefaultChannel,
    DefectCode::Duplicate,
];

/// Returns whether a package with a defect is invalid as a whole.
pub(super) fn invalidates_package(defect: &Diagnostic) -> bool {
    INVALIDATING.iter().any(|code| defect.code == *code)
}
