//! The changes that are worth trying against a conflict: those that touch a part of it.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use super::{Proposal, SuggestedChangeKind, Wording};
use crate::bundle::{Bundle, Constraint, InstallMode, Requirement};
use crate::conflict::Conflict;
use crate::encode::Reason;
use crate::explain::format::described;
use crate::model::{
    CatalogPackage, ChoiceId, Ineligible, Model, Owner, Solvable, SolvableId, excludes,
};
use crate::package::{Channel, ChannelEntry, Package};
use crate::problem::{
    BundleExclusion, CatalogName, CatalogPart, ChannelPolicy, FollowedChannel, Problem,
    ResolutionOverrides,
};
use crate::range::blang;
use crate::version::{parse_strict, parse_tolerant};

/// The name of bundles that stand for what a catalog to be added would have.
pub(super) const PLACEHOLDER: &str = "(added)";

pub(super) fn proposals(model: &Model<'_>, conflict: &Conflict) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for reason in &conflict.reasons {
        match *reason {
            Reason::Choice(choice) => of_choice(model, choice, &mut proposals),
            Reason::Ineligible(solvable) => {
                if let Some(ineligible) = &model.solvables[solvable].ineligible {
                    of_ineligible(model, solvable, ineligible, &mut proposals);
                }
            }
            Reason::Exclusion(_) => {}
        }
    }
    for (solvable, requirement) in newest_owners(model, conflict) {
        wider(model, solvable, requirement, &mut proposals);
    }
    general(model.problem(), &mut proposals);
    let mut known = BTreeSet::new();
    proposals.retain(|proposal| known.insert(proposal.text.words().to_owned()));
    proposals
}

/// Requirements that nothing satisfies, each with the newest bundle of a package that has it.
fn newest_owners<'p>(model: &Model<'p>, conflict: &Conflict) -> Vec<(SolvableId, &'p Requirement)> {
    let mut newest: BTreeMap<(Option<&str>, &'p Requirement), SolvableId> = BTreeMap::new();
    for reason in &conflict.reasons {
        let Reason::Choice(choice) = *reason else { continue };
        let Owner::Solvable(solvable, _) = model.choices[choice].owner else { continue };
        let Some(requirement) = model.requirement(choice) else { continue };
        if model.choices[choice].candidates.is_empty() {
            let best = newest
                .entry((model.solvables[solvable].package(), requirement))
                .or_insert(solvable);
            let version = |solvable: SolvableId| &model.solvables[solvable].bundle.version;
            if version(solvable).cmp_precedence(version(*best)).is_gt() {
                *best = solvable;
            }
        }
    }
    newest.into_iter().map(|((_, requirement), solvable)| (solvable, requirement)).collect()
}

fn propose(
    proposals: &mut Vec<Proposal>,
    kind: SuggestedChangeKind,
    text: String,
    apply: impl Fn(&mut Problem) + 'static,
) {
    proposals.push(Proposal { kind, text: Wording::Plain(text), apply: Box::new(apply) });
}

fn of_choice(model: &Model<'_>, choice: ChoiceId, proposals: &mut Vec<Proposal>) {
    match model.choices[choice].owner {
        Owner::Request(at) => of_request(model, at, proposals),
        Owner::Stays(at) | Owner::Follows(at) => {
            follow(model, at, proposals);
            let name = &model.problem().query.installed[at].bundle.name;
            let text = format!("uninstall {name}");
            propose(proposals, SuggestedChangeKind::Remove, text, move |problem| {
                problem.query.installed.remove(at);
            });
        }
        Owner::Solvable(..) => {
            if let Some(requirement) = model.requirement(choice)
                && model.choices[choice].candidates.is_empty()
            {
                missing(requirement, proposals);
            }
        }
    }
}

/// A channel for something that is installed without one.
fn follow(model: &Model<'_>, at: usize, proposals: &mut Vec<Proposal>) {
    let item = &model.problem().query.installed[at];
    let (Some(package), None) = (&item.package, &item.follows) else { return };
    let packages = model.index.named(package).iter().map(|id| &model.index.packages[*id]);
    let Some(channel) = packages.filter_map(CatalogPackage::default_channel).next() else { return };
    let text = format!("let {} follow channel `{channel}`", item.bundle.name);
    let channel = channel.to_owned();
    propose(proposals, SuggestedChangeKind::Channel, text, move |problem| {
        problem.query.installed[at].follows =
            Some(FollowedChannel { channel: channel.clone(), catalog: None });
    });
}

fn of_request(model: &Model<'_>, at: usize, proposals: &mut Vec<Proposal>) {
    let query = &model.problem().query;
    let request = &query.requests[at];
    let package = request.package.clone();
    if request.version.is_some() {
        proposals.push(Proposal {
            kind: SuggestedChangeKind::Version,
            text: Wording::WithVersion(
                format!("request another version of {package}"),
                package.clone(),
            ),
            apply: Box::new(move |problem| problem.query.requests[at].version = None),
        });
    }
    if let Some(bundle) = &request.bundle {
        let text = format!("start at the newest bundle of {package} instead of {bundle}");
        propose(proposals, SuggestedChangeKind::Version, text, move |problem| {
            problem.query.requests[at].bundle = None;
        });
    }
    if let Some(catalog) = &request.catalog {
        let text = format!("allow {package} from any catalog, not only {catalog}");
        propose(proposals, SuggestedChangeKind::Channel, text, move |problem| {
            problem.query.requests[at].catalog = None;
        });
    }
    of_channel(model, at, proposals);
    if query.requests.len() > 1 {
        let text = format!("drop the request for {package}");
        propose(proposals, SuggestedChangeKind::LeaveOut, text, move |problem| {
            problem.query.requests.remove(at);
        });
    }
    if !request.ignore_dependencies {
        let text = format!("install {package} without its dependencies and provide them yourself");
        propose(proposals, SuggestedChangeKind::IgnoreDependencies, text, move |problem| {
            problem.query.requests[at].ignore_dependencies = true;
        });
    }
}

/// Another channel of what is requested, or a catalog that has it at all.
fn of_channel(model: &Model<'_>, at: usize, proposals: &mut Vec<Proposal>) {
    let request = &model.problem().query.requests[at];
    let package = request.package.clone();
    let package_ids = model.index.named(&package);
    let channels: BTreeSet<&String> = package_ids
        .iter()
        .flat_map(|package_id| &model.index.packages[*package_id].package.channels)
        .map(|channel| &channel.name)
        .collect();
    for channel in channels {
        if request.channel.as_ref() != Some(channel) {
            let name = channel.clone();
            let text = format!("request {package} from channel `{channel}`");
            propose(proposals, SuggestedChangeKind::Channel, text, move |problem| {
                problem.query.requests[at].channel = Some(name.clone());
            });
        }
    }
    if package_ids.is_empty() {
        let requirement = Constraint::Package { name: package.clone(), range: ">=0.0.0".into() };
        let channel = request.channel.clone();
        if let Some(part) = placeholder(&requirement, channel) {
            let text = format!("add a catalog that has package {package}");
            propose(proposals, SuggestedChangeKind::Catalog, text, move |problem| {
                problem.query.global_namespaces.clear();
                problem.query.requests[at].catalog = None;
                problem.catalogs.push(part.clone());
            });
        }
    }
}

/// Something that no bundle satisfies may be in a catalog that was not given.
fn missing(requirement: &Requirement, proposals: &mut Vec<Proposal>) {
    if let Some(part) = placeholder(&requirement.constraint, None) {
        let text = format!("add a catalog that has {}", described(requirement));
        propose(proposals, SuggestedChangeKind::Catalog, text, move |problem| {
            problem.query.global_namespaces.clear();
            problem.catalogs.push(part.clone());
        });
    }
}

/// A catalog with one bundle that satisfies a constraint and needs nothing.
fn placeholder(constraint: &Constraint, channel: Option<String>) -> Option<CatalogPart> {
    let mut bundle = Bundle::new(PLACEHOLDER, Version::new(1, 0, 0));
    let mut package = PLACEHOLDER.to_owned();
    match constraint {
        Constraint::Api(api) => bundle.provides.push(api.clone()),
        Constraint::Label(label) => bundle.labels.push(label.clone()),
        Constraint::Package { name, range } => {
            package.clone_from(name);
            bundle.version = version_in(range)?;
        }
        Constraint::All(_) | Constraint::Any(_) | Constraint::Not(_) | Constraint::Cel { .. } => {
            return None;
        }
    }
    let channel = channel.unwrap_or_else(|| "stable".to_owned());
    let entry = ChannelEntry { name: PLACEHOLDER.to_owned(), ..ChannelEntry::default() };
    let package = Package {
        name: package,
        default_channel: Some(channel.clone()),
        channels: vec![Channel { name: channel, entries: vec![entry], ..Channel::default() }],
        bundles: vec![bundle],
        ..Package::default()
    };
    let name = CatalogName { namespace: String::new(), name: PLACEHOLDER.to_owned() };
    Some(CatalogPart { name, weight: i64::MAX, packages: vec![package] })
}

/// Some version of a range: one that it names, or the one after it.
fn version_in(text: &str) -> Option<Version> {
    let range = blang::Range::parse(text).ok()?;
    let named = text.split([' ', '|', '<', '>', '=', '!']).filter_map(|word| {
        parse_strict(&word.replace(".x", ".0"))
            .or_else(|_| parse_strict(&word.replace(".x", ".0.0")))
            .ok()
    });
    let named: Vec<Version> = named.collect();
    let after = named.iter().map(|it| Version::new(it.major, it.minor, it.patch.saturating_add(1)));
    let first = std::iter::once(Version::new(0, 0, 0));
    named.iter().cloned().chain(after).chain(first).find(|version| range.matches(version))
}

/// The author of what needs something could allow what there is.
fn wider(
    model: &Model<'_>,
    solvable: usize,
    requirement: &Requirement,
    proposals: &mut Vec<Proposal>,
) {
    let Constraint::Package { name, range } = &requirement.constraint else { return };
    let solvable = &model.solvables[solvable];
    let index = &model.index;
    let heads = index.named(name).iter().filter_map(|package_id| {
        let channel = *index.channels(solvable.namespace, *package_id).first()?;
        let catalog_package = &index.packages[*package_id];
        let head = *catalog_package.order(channel).entries.first()?;
        catalog_package.bundle(&catalog_package.package.channels[channel].entries[head].name)
    });
    let Some(head) = heads.max_by(|left, right| left.version.cmp_precedence(&right.version)) else {
        return;
    };
    let Some(package) = solvable.package().map(str::to_owned) else { return };
    let text = format!(
        "widen the requirement of {package} {} on {name} from `{range}` to include {}",
        solvable.bundle.version, head.version
    );
    let wide = Constraint::Package {
        name: name.clone(),
        range: format!(
            "{range} || {}",
            Version { build: semver::BuildMetadata::EMPTY, ..head.version.clone() }
        ),
    };
    let (narrow, bundle) = (requirement.clone(), solvable.bundle.name.clone());
    propose(proposals, SuggestedChangeKind::Range, text, move |problem| {
        let packages = problem.catalogs.iter_mut().flat_map(|catalog| &mut catalog.packages);
        let bundles = packages.filter(|it| it.name == package).flat_map(|it| &mut it.bundles);
        for requirement in
            bundles.filter(|it| it.name == bundle).flat_map(|bundle| &mut bundle.requires)
        {
            if *requirement == narrow {
                requirement.constraint = wide.clone();
            }
        }
    });
}

fn of_ineligible(
    model: &Model<'_>,
    id: SolvableId,
    ineligible: &Ineligible,
    proposals: &mut Vec<Proposal>,
) {
    let Solvable { namespace, bundle, .. } = model.solvables[id];
    match ineligible {
        Ineligible::Excluded => {
            for exclusion in &model.problem().query.overrides.exclude {
                if Some(exclusion.package.as_str()) == model.solvables[id].package()
                    && excludes(exclusion, bundle)
                {
                    let exclusion = exclusion.clone();
                    let text = format!("take back the exclusion of {}", excluded(&exclusion));
                    propose(proposals, SuggestedChangeKind::Override, text, move |problem| {
                        problem.query.overrides.exclude.retain(|it| *it != exclusion);
                    });
                }
            }
        }
        Ineligible::Kubernetes(lowest) => {
            if let Ok(version) = parse_tolerant(lowest) {
                let text = format!("update the cluster to Kubernetes {lowest} or later");
                propose(proposals, SuggestedChangeKind::Cluster, text, move |problem| {
                    problem.query.facts.kubernetes = Some(version.clone());
                });
            }
        }
        Ineligible::InstallMode { .. } => {
            for mode in bundle.install_modes.iter().flatten() {
                operator_group(namespace, *mode, proposals);
            }
        }
        Ineligible::Capability(name) => {
            let text = format!("enable capability {name}");
            let name = name.clone();
            propose(proposals, SuggestedChangeKind::Cluster, text, move |problem| {
                if let Some(enabled) = &mut problem.query.facts.capabilities {
                    enabled.push(name.clone());
                }
            });
        }
        Ineligible::Defect(_)
        | Ineligible::Deprecated
        | Ineligible::OpenShift(_)
        | Ineligible::NativeApi(_)
        | Ineligible::Architecture(_) => {}
    }
}

/// An operator group of a namespace that needs an install mode only.
fn operator_group(namespace: &str, mode: InstallMode, proposals: &mut Vec<Proposal>) {
    let (what, targets) = match mode {
        InstallMode::AllNamespaces => ("all namespaces", Vec::new()),
        InstallMode::OwnNamespace => ("only its own namespace", vec![namespace.to_owned()]),
        InstallMode::SingleNamespace => ("only one other namespace", vec![PLACEHOLDER.to_owned()]),
        InstallMode::MultiNamespace => {
            let second = format!("{PLACEHOLDER} 2");
            ("several other namespaces", vec![PLACEHOLDER.to_owned(), second])
        }
    };
    let text = format!(
        "let the operator group of namespace `{namespace}` select {what} (install mode {mode})"
    );
    let namespace = namespace.to_owned();
    propose(proposals, SuggestedChangeKind::Cluster, text, move |problem| {
        for group in &mut problem.query.operator_groups {
            if group.namespace == namespace {
                group.targets.clone_from(&targets);
            }
        }
    });
}

/// An exclusion as people write it.
fn excluded(exclusion: &BundleExclusion) -> String {
    match (&exclusion.bundle, &exclusion.versions) {
        (Some(bundle), _) => format!("{}/{bundle}", exclusion.package),
        (None, Some(versions)) => format!("{} `{versions}`", exclusion.package),
        (None, None) => exclusion.package.clone(),
    }
}

/// Proposes what may always help.
fn general(problem: &Problem, proposals: &mut Vec<Proposal>) {
    if problem.query.channels == ChannelPolicy::DefaultOnly {
        let text = "allow channels other than the default one".to_owned();
        propose(proposals, SuggestedChangeKind::AnyChannel, text, |problem| {
            problem.query.channels = ChannelPolicy::PreferDefault;
        });
    }
    if problem.query.overrides != ResolutionOverrides::default() {
        let text = "remove all overrides".to_owned();
        propose(proposals, SuggestedChangeKind::Override, text, |problem| {
            problem.query.overrides = ResolutionOverrides::default();
        });
    }
}
