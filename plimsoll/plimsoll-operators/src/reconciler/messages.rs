//! Messages about what blocks a revision, and what resolves it.

use plimsoll_api::olm::{BundleReference, CertificateProvider};
use plimsoll_api::{ObjectKey, Reason};

use super::events::{FoundObject, UnservedKind};
use super::track::{RevisionInputs, TrackedOperator};
use crate::{OperatorBlock, version_text};

/// The reason that an OperatorRevision is not used which the controller did not make, as a clause.
pub(super) const NOT_SIGNED: &str =
    "it does not have the controller's signature, so another client made or changed it: delete it";

/// The reason that an OperatorRevision is not used which an earlier version of this program made and no Operator of
/// the name controlled at the first start of this one, as a clause.
pub(super) const SIGNED_EARLIER: &str = "an earlier version of the controller made it, and its signature does \
                                         not say for which Operator: delete it";

/// The reason that an OperatorRevision is not used which was made for another Operator, as a clause.
pub(super) const OF_ANOTHER: &str = "the controller made it for an earlier Operator of this name, so another \
                                     client created it again: delete it";

pub(super) fn catalog_gone(wanted: &RevisionInputs) -> OperatorBlock {
    let BundleReference { name, catalog, .. } = &wanted.bundle;
    let message = format!(
        "bundle {name} comes from Catalog \"{catalog}\", which does not exist any more: create it, or \
         name another one in spec.repository"
    );
    OperatorBlock::new(Reason::CatalogNotFound, message)
}

pub(super) fn revision_not_kept(operator: &TrackedOperator, revision: u32) -> OperatorBlock {
    let kept: Vec<String> = operator.revisions.keys().map(u32::to_string).collect();
    let kept = match kept.as_slice() {
        [] => "none is".to_owned(),
        [only] => format!("only {only} is"),
        several => format!("{} are", several.join(", ")),
    };
    let message = format!(
        "revision {revision} is not kept, {kept}: set spec.revision to one that is, or remove it"
    );
    OperatorBlock::new(Reason::InstallationFailed, message)
}

pub(super) fn rolled_back(name: &str, bundle: &BundleReference) -> OperatorBlock {
    let version = version_text(&bundle.version);
    let message = format!(
        "the rollout of {name} {version} was given up for the revision before: set spec.rollback to \
         Manual to try it again, or spec.version to another one"
    );
    OperatorBlock::new(Reason::UpgradeBlocked, message)
}

/// Returns the block of a change of the spec whose revision was rolled back.
pub(super) fn change_rolled_back(name: &str, revision: u32) -> OperatorBlock {
    let message = format!(
        "the rollout of {name} as it is requested, revision {revision}, was given up for the revision \
         before: set spec.rollback to Manual to try it again, or change what is requested"
    );
    OperatorBlock::new(Reason::UpgradeBlocked, message)
}

pub(super) fn namespace_moved(name: &str, from: &str, to: &str) -> OperatorBlock {
    let message = format!(
        "{name} is installed in namespace {from} and is not moved to {to}: set spec.namespace back, or \
         delete the Operator and create it anew"
    );
    OperatorBlock::new(Reason::Conflict, message)
}

pub(super) fn namespace_terminating(namespace: &str) -> OperatorBlock {
    let message =
        format!("namespace {namespace} is being deleted; it is installed once that is done");
    OperatorBlock::new(Reason::Conflict, message)
}

pub(super) fn owned_by_us(found: &FoundObject) -> OperatorBlock {
    let owner = match found.operator.as_str() {
        "" => "the release".to_owned(),
        operator => format!("Operator {operator}"),
    };
    let message = format!("{} belongs to {owner}: delete one of the two", found.key);
    OperatorBlock::new(Reason::Conflict, message)
}

pub(super) fn replaced(key: &ObjectKey) -> String {
    format!(
        "{key} is deleted and created again, and is not available meanwhile: its spec.selector changes, \
         which is immutable"
    )
}

pub(super) fn held(key: &ObjectKey, holder: &str) -> OperatorBlock {
    let message = format!("{key} belongs to Operator {holder}: delete one of the two");
    OperatorBlock::new(Reason::Conflict, message)
}

pub(super) fn collision(found: &FoundObject) -> OperatorBlock {
    let managers: Vec<&str> = found.managers.iter().map(String::as_str).collect();
    let fields = match managers.as_slice() {
        [] => String::new(),
        managers => format!(", together with the fields of {}", managers.join(", ")),
    };
    let message = match &found.controller {
        Some(controller) => format!(
            "{} exists and is controlled by {controller}: delete it, or set spec.collisionProtection \
             to None to take it over{fields}",
            found.key
        ),
        None => format!(
            "{} exists and does not belong to the Operator: delete it, or set \
             spec.collisionProtection to IfNoController to take it over{fields}",
            found.key
        ),
    };
    OperatorBlock::new(Reason::Conflict, message)
}

pub(super) fn not_returned_to(revision: u32, block: &OperatorBlock) -> OperatorBlock {
    let message = format!("revision {revision} is not applied again: {}", block.message);
    OperatorBlock::new(block.reason, message)
}

/// Returns the block of a bundle with objects of kinds that are not served.
pub(super) fn unserved(bundle: &BundleReference, missing: &[String]) -> OperatorBlock {
    let message = format!(
        "{} has objects of kinds that the cluster does not serve: {}",
        bundle.name,
        missing.join("; ")
    );
    OperatorBlock::new(Reason::ClusterIncompatible, message)
}

/// Names an object of a kind that is not served, and what resolves that.
pub(super) fn unserved_kind(
    object: &ObjectKey,
    unserved: &UnservedKind,
    provider: CertificateProvider,
) -> String {
    let UnservedKind { kind, versions, providers } = unserved;
    if kind.version.is_empty() {
        return format!("{object}: the bundle has it without an apiVersion");
    }
    let is_for_certificates =
        provider == CertificateProvider::CertManager && kind.group == "cert-manager.io";
    let advice = match (versions.as_slice(), providers.as_slice()) {
        ([], []) if is_for_certificates => {
            "install cert-manager, or set spec.certificates to another provider".to_owned()
        }
        ([], []) => "install what defines it".to_owned(),
        ([], providers) => format!("install a package that provides it: {}", providers.join(", ")),
        (versions, _) => {
            format!("it is served as {}: choose another version", versions.join(", "))
        }
    };
    format!("{object} ({kind}): {advice}")
}

/// Returns the block of a bundle whose definitions no API server accepts in place of the existing ones.
pub fn refused_definitions(bundle: &BundleReference, problems: &str) -> OperatorBlock {
    let message =
        format!("{} changes definitions as no API server accepts: {problems}", bundle.name);
    OperatorBlock::new(Reason::UpgradeBlocked, message)
}

/// Returns the block of a bundle whose definitions break the users of the existing ones.
pub fn unsafe_definitions(bundle: &BundleReference, problems: &str) -> OperatorBlock {
    let message = format!(
        "{} changes definitions in ways that break their users: {problems}; set \
         spec.crdUpgradeSafety to Warn to go ahead all the same",
        bundle.name
    );
    OperatorBlock::new(Reason::UpgradeBlocked, message)
}
