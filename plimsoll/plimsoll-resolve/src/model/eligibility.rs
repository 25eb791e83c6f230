//! Eligibility of bundles: one that is part of a solution is sound, wanted, and fits the cluster.

use semver::Version;

use super::Index;
use crate::bundle::{Api, Bundle, InstallMode};
use crate::matching::unreadable_range;
use crate::problem::{BundleExclusion, ClusterFacts};
use crate::range::blang;
use crate::version::parse_tolerant;

/// Why a bundle cannot be part of any solution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ineligible {
    /// It is malformed: what is wrong.
    Defect(String),
    /// It carries `olm.deprecated`.
    Deprecated,
    /// The query excludes it.
    Excluded,
    /// It needs a newer Kubernetes: the lowest that would do.
    Kubernetes(String),
    /// It does not run on such a new OpenShift: the newest that would do.
    OpenShift(String),
    /// It does not support the way in which operators of the namespace watch: which would be
    /// needed.
    InstallMode {
        /// The mode.
        mode: InstallMode,
        /// The namespace.
        namespace: String,
    },
    /// The cluster does not serve an API.
    NativeApi(Api),
    /// It does not run on an architecture of the cluster.
    Architecture(String),
    /// A capability is not enabled.
    Capability(String),
}

impl Ineligible {
    /// The reason as a sentence about `who`, which are `several` bundles or one.
    pub(crate) fn sentence(&self, who: &str, several: bool, facts: &ClusterFacts) -> String {
        let pick = |one: &'static str, more: &'static str| if several { more } else { one };
        let text = |version: &Option<Version>| {
            version.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        match self {
            Self::Defect(cause) => format!("{who} {} malformed: {cause}", pick("is", "are")),
            Self::Deprecated => {
                format!("{who} {} deprecated (`olm.deprecated`)", pick("is", "are"))
            }
            Self::Excluded => format!("{who} {} excluded by an override", pick("is", "are")),
            Self::Kubernetes(lowest) => {
                let (verb, has) = (pick("requires", "require"), text(&facts.kubernetes));
                format!("{who} {verb} Kubernetes {lowest} or later; the cluster runs {has}")
            }
            Self::OpenShift(newest) => {
                let (verb, has) = (pick("supports", "support"), text(&facts.openshift));
                format!("{who} {verb} OpenShift {newest} at most; the cluster runs {has}")
            }
            Self::InstallMode { mode, namespace } => {
                let verb = pick("does", "do");
                format!(
                    "{who} {verb} not support install mode {mode}, which the operator group of \
                     namespace `{namespace}` requires"
                )
            }
            Self::NativeApi(api) => {
                let verb = pick("requires", "require");
                format!("{who} {verb} {api}, which the cluster does not serve")
            }
            Self::Architecture(architecture) => {
                let verb = pick("does", "do");
                format!(
                    "{who} {verb} not support {architecture}, an architecture of the cluster's \
                     nodes"
                )
            }
            Self::Capability(name) => {
                let verb = pick("requires", "require");
                format!("{who} {verb} capability {name}, which is not enabled")
            }
        }
    }
}

/// Returns why a bundle of a package cannot be installed into a namespace, if so.
pub(crate) fn ineligible(
    index: &Index<'_>,
    namespace: &str,
    package: &str,
    bundle: &Bundle,
) -> Option<Ineligible> {
    if let Some(defect) = defect(index, bundle) {
        return Some(Ineligible::Defect(defect));
    }
    if bundle.deprecated {
        return Some(Ineligible::Deprecated);
    }
    if excluded(index, package, bundle) {
        return Some(Ineligible::Excluded);
    }
    let facts = &index.problem.query.facts;
    versions(facts, bundle)
        .or_else(|| install_mode(index, namespace, bundle))
        .or_else(|| surroundings(facts, bundle))
}

/// Returns why a bundle does not fit a cluster, if so.
pub(crate) fn unfit(facts: &ClusterFacts, bundle: &Bundle) -> Option<Ineligible> {
    versions(facts, bundle).or_else(|| surroundings(facts, bundle))
}

/// Returns what is wrong with a bundle, its expressions left out.
pub(crate) fn malformed(bundle: &Bundle) -> Option<String> {
    if let Some(defect) = bundle.defects.first() {
        return Some(defect.clone());
    }
    if let Some(text) = &bundle.min_kube_version
        && parse_tolerant(text).is_err()
    {
        return Some(format!("its lowest version of Kubernetes, `{text}`, is not a version"));
    }
    bundle.requires.iter().find_map(unreadable_range)
}

fn defect(index: &Index<'_>, bundle: &Bundle) -> Option<String> {
    malformed(bundle).or_else(|| {
        let cause = bundle.requires.iter().find_map(|it| index.rule_error(it))?;
        Some(format!("its expression is invalid: {cause}"))
    })
}

fn excluded(index: &Index<'_>, package: &str, bundle: &Bundle) -> bool {
    let mut exclusions = index.problem.query.overrides.exclude.iter();
    exclusions.any(|exclusion| exclusion.package == package && excludes(exclusion, bundle))
}

/// Returns whether an exclusion concerns a bundle of its package.
pub(crate) fn excludes(exclusion: &BundleExclusion, bundle: &Bundle) -> bool {
    let in_range =
        |text: &String| blang::Range::parse(text).is_ok_and(|range| range.matches(&bundle.version));
    exclusion.bundle.as_ref().is_none_or(|name| *name == bundle.name)
        && exclusion.versions.as_ref().is_none_or(in_range)
}

fn versions(facts: &ClusterFacts, bundle: &Bundle) -> Option<Ineligible> {
    if let (Some(kubernetes), Some(text)) = (&facts.kubernetes, &bundle.min_kube_version)
        && let Ok(lowest) = parse_tolerant(text)
        && numbers(kubernetes) < numbers(&lowest)
    {
        return Some(Ineligible::Kubernetes(text.clone()));
    }
    if let (Some(openshift), Some(text)) = (&facts.openshift, &bundle.max_openshift_version)
        && let Some((major, minor)) = text.split_once('.')
        && let (Ok(major), Ok(minor)) = (major.parse(), minor.parse())
        && openshift_minor(openshift.major, openshift.minor) > openshift_minor(major, minor)
    {
        return Some(Ineligible::OpenShift(text.clone()));
    }
    None
}

/// Returns the numbers of a version of Kubernetes. What distributors add makes it neither older nor newer.
fn numbers(version: &Version) -> (u64, u64, u64) {
    (version.major, version.minor, version.patch)
}

/// OpenShift 5.0 is what 4.23 is.
const MINORS_OF_OPENSHIFT_4: u64 = 23;

fn openshift_minor(major: u64, minor: u64) -> (u64, u64) {
    match major {
        5 => (4, minor.saturating_add(MINORS_OF_OPENSHIFT_4)),
        _ => (major, minor),
    }
}

fn install_mode(index: &Index<'_>, namespace: &str, bundle: &Bundle) -> Option<Ineligible> {
    let supported = bundle.install_modes.as_ref()?;
    let groups = &index.problem.query.operator_groups;
    let group = groups.iter().find(|group| group.namespace == namespace)?;
    let own = group.targets.iter().any(|target| target == namespace);
    let needed: &[InstallMode] = match (group.targets.len(), own) {
        (0, _) => &[InstallMode::AllNamespaces],
        (1, true) => &[InstallMode::OwnNamespace],
        (1, false) => &[InstallMode::SingleNamespace],
        (_, true) => &[InstallMode::MultiNamespace, InstallMode::OwnNamespace],
        (_, false) => &[InstallMode::MultiNamespace],
    };
    let missing = needed.iter().find(|mode| !supported.contains(mode));
    let namespace = namespace.to_owned();
    missing.map(|mode| Ineligible::InstallMode { mode: *mode, namespace })
}

fn surroundings(facts: &ClusterFacts, bundle: &Bundle) -> Option<Ineligible> {
    if let Some(apis) = &facts.apis
        && let Some(api) = bundle.native_apis.iter().find(|api| !apis.contains(api))
    {
        return Some(Ineligible::NativeApi(api.clone()));
    }
    let runs_on = |architecture: &&String| bundle.architectures.contains(architecture);
    if !bundle.architectures.is_empty()
        && let Some(architecture) = facts.architectures.iter().find(|it| !runs_on(it))
    {
        return Some(Ineligible::Architecture(architecture.clone()));
    }
    if let Some(enabled) = &facts.capabilities
        && let Some(name) = bundle.capabilities.iter().find(|name| !enabled.contains(name))
    {
        return Some(Ineligible::Capability(name.clone()));
    }
    None
}
