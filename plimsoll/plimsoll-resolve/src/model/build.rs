//! Builds a model: from the requests and what is installed along everything that they may need.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::candidates::{self, Candidate, Requester, provider_allowed};
use super::eligibility::ineligible;
use super::{
    CatalogEntry, Choice, ChoiceId, ExclusionCause, Index, Model, MutualExclusion, Origin, Owner,
    Solvable, SolvableId,
};
use crate::bundle::{Api, Constraint, Requirement};
use crate::matching::{ConstraintMatcher, served};
use crate::problem::{InstalledBundle, PackageRequest};
use crate::range::masterminds;

pub(super) fn build(index: Index<'_>) -> Model<'_> {
    let mut builder = Builder {
        model: Model {
            index,
            solvables: Vec::new(),
            choices: Vec::new(),
            roots: 0,
            claims: Vec::new(),
            needs: Vec::new(),
            exclusions: Vec::new(),
        },
        by_entry: BTreeMap::new(),
        known: BTreeMap::new(),
        installed_of: BTreeMap::new(),
        installed_with: BTreeMap::new(),
        covering: BTreeMap::new(),
    };
    builder.installed();
    builder.roots();
    let mut next = 0;
    while next < builder.model.solvables.len() {
        builder.needs(next);
        next += 1;
    }
    exclusions(&mut builder.model);
    builder.model
}

/// A requirement for a namespace and, by its address, the catalog of the bundle that has it.
type Sought<'p> = (&'p str, Option<usize>, &'p Requirement);

struct Builder<'p> {
    model: Model<'p>,
    /// The solvable of a package, channel, entry and namespace.
    by_entry: BTreeMap<(usize, usize, usize, &'p str), SolvableId>,
    /// What satisfies a requirement for a namespace and a catalog.
    known: BTreeMap<Sought<'p>, Rc<[SolvableId]>>,
    /// What is installed of a package.
    installed_of: BTreeMap<&'p str, Vec<SolvableId>>,
    /// What is installed and provides an API.
    installed_with: BTreeMap<&'p Api, Vec<SolvableId>>,
    /// The namespaces whose operators serve another.
    covering: BTreeMap<&'p str, Rc<[&'p str]>>,
}

impl<'p> Builder<'p> {
    /// Adds what is installed: these are the first solvables, in its order.
    fn installed(&mut self) {
        for (at, item) in self.model.problem().query.installed.iter().enumerate() {
            if let Some(package) = &item.package {
                self.installed_of.entry(package).or_default().push(at);
            }
            for api in &item.bundle.provides {
                let with = self.installed_with.entry(api).or_default();
                if with.last() != Some(&at) {
                    with.push(at);
                }
            }
            self.model.solvables.push(Solvable {
                namespace: &item.namespace,
                bundle: &item.bundle,
                origin: Origin::Installed(item),
                ineligible: None,
            });
        }
    }

    fn roots(&mut self) {
        let query = &self.model.problem().query;
        let claims = claims(&query.requests, &query.installed);
        self.model.claims.clone_from(&claims);
        for (at, item) in query.installed.iter().enumerate() {
            if !claims.contains(&Some(at)) && item.follows.is_none() {
                self.choose(Owner::Stays(at), Rc::from([at]));
            }
        }
        for (at, request) in query.requests.iter().enumerate() {
            let claimed = claims[at].map(|at| (at, &query.installed[at]));
            let item = claimed.map(|(_, item)| item);
            let found = candidates::requested(&self.model.index, request, item);
            let mut solvables = self.solvables_for(&request.namespace, &found);
            if let Some((at, item)) = claimed {
                self.succession(at, &solvables);
                if may_stay(request, item) {
                    solvables.insert(self.before_deprecated(item, &solvables), at);
                }
            }
            self.choose(Owner::Request(at), solvables.into());
        }
        for (at, item) in query.installed.iter().enumerate() {
            if !claims.contains(&Some(at)) && item.follows.is_some() {
                let found = candidates::following(&self.model.index, item);
                let mut solvables = self.solvables_for(&item.namespace, &found);
                self.succession(at, &solvables);
                solvables.insert(0, at);
                self.choose(Owner::Follows(at), solvables.into());
            }
        }
        self.model.roots = self.model.choices.len();
    }

    /// Returns the place of what is installed among its updates: before bundles that are deprecated,
    /// unless it is deprecated itself.
    fn before_deprecated(&self, item: &InstalledBundle, updates: &[SolvableId]) -> usize {
        let deprecated = |id: &SolvableId| self.model.solvables[*id].bundle.deprecation.is_some();
        let first =
            updates.iter().position(deprecated).filter(|_| item.bundle.deprecation.is_none());
        first.unwrap_or(updates.len())
    }

    /// Excludes an installed bundle and what replaces it from a common solution. For those of one
    /// package that is so anyway.
    fn succession(&mut self, installed: SolvableId, updates: &[SolvableId]) {
        let package = self.model.solvables[installed].package();
        for update in updates {
            if package.is_none() || self.model.solvables[*update].package() != package {
                let solvables = vec![installed, *update];
                self.model
                    .exclusions
                    .push(MutualExclusion { why: ExclusionCause::Succession, solvables });
            }
        }
    }

    fn choose(&mut self, owner: Owner, candidates: Rc<[SolvableId]>) -> ChoiceId {
        self.model.choices.push(Choice { owner, candidates });
        self.model.choices.len() - 1
    }

    fn solvables_for(&mut self, namespace: &'p str, found: &[Candidate<'p>]) -> Vec<SolvableId> {
        found.iter().map(|candidate| self.solvable_for(namespace, candidate)).collect()
    }

    fn solvable_for(&mut self, namespace: &'p str, candidate: &Candidate<'p>) -> SolvableId {
        let Candidate { package_id, channel, entry, .. } = *candidate;
        if let Some(solvable) = self.by_entry.get(&(package_id, channel, entry, namespace)) {
            return *solvable;
        }
        let index = &self.model.index;
        let catalog_package = &index.packages[package_id];
        let of = &catalog_package.package.channels[channel];
        let bundle = catalog_package
            .bundle(&of.entries[entry].name)
            .expect("candidates are entries whose bundle was found");
        let solvable = Solvable {
            namespace,
            bundle,
            origin: Origin::Catalog(CatalogEntry {
                catalog: catalog_package.catalog,
                package: catalog_package.package,
                channel: of,
                entry: &of.entries[entry],
            }),
            ineligible: ineligible(index, namespace, &catalog_package.package.name, bundle),
        };
        self.model.solvables.push(solvable);
        self.by_entry
            .insert((package_id, channel, entry, namespace), self.model.solvables.len() - 1);
        self.model.solvables.len() - 1
    }

    /// Adds the choices of a solvable.
    fn needs(&mut self, id: SolvableId) {
        let solvable = &self.model.solvables[id];
        let ignored = match solvable.origin {
            Origin::Installed(item) => item.ignore_dependencies,
            Origin::Catalog(_) => solvable.ineligible.is_some() || self.ignores_dependencies(id),
        };
        let bundle = solvable.bundle;
        let mut needs = Vec::new();
        if !ignored {
            for (at, requirement) in bundle.requires.iter().enumerate() {
                if !self.satisfied_by_itself(id, requirement) {
                    let found = self.satisfying(id, requirement);
                    needs.push(self.choose(Owner::Solvable(id, at), found));
                }
            }
        }
        debug_assert_eq!(self.model.needs.len(), id, "solvables get their needs in their order");
        self.model.needs.push(needs);
    }

    /// Returns whether the request for it says to install it without its dependencies.
    fn ignores_dependencies(&self, id: SolvableId) -> bool {
        let solvable = &self.model.solvables[id];
        self.model.problem().query.requests.iter().any(|request| {
            request.ignore_dependencies
                && request.namespace == solvable.namespace
                && Some(request.package.as_str()) == solvable.package()
        })
    }

    /// Returns whether the cluster, or the bundle that requires it, satisfies a requirement.
    fn satisfied_by_itself(&self, id: SolvableId, requirement: &Requirement) -> bool {
        let solvable = &self.model.solvables[id];
        let index = &self.model.index;
        let facts = &index.problem.query.facts;
        if facts.apis.as_ref().is_some_and(|apis| served(&requirement.constraint, apis)) {
            return true;
        }
        let matcher = ConstraintMatcher::new(&requirement.constraint);
        let evaluate = |rule: &str| index.rule_holds(rule, solvable.bundle);
        if !matcher.holds(solvable.bundle, solvable.package(), &evaluate) {
            return false;
        }
        let Some(offered) = solvable.catalog_entry() else { return true };
        let mut package_ids = index.named(&offered.package.name).iter();
        let own = |package_id: &&usize| {
            std::ptr::eq(index.packages[**package_id].package, offered.package)
        };
        package_ids
            .find(own)
            .is_none_or(|package_id| provider_allowed(index, &requirement.constraint, *package_id))
    }

    /// Returns the candidates for a requirement: what is installed comes before everything that is not.
    fn satisfying(&mut self, id: SolvableId, requirement: &'p Requirement) -> Rc<[SolvableId]> {
        let solvable = &self.model.solvables[id];
        let namespace = solvable.namespace;
        let catalog = solvable.catalog_entry().map(|offered| offered.catalog);
        let key = (namespace, catalog.map(|it| std::ptr::from_ref(it).addr()), requirement);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let matcher = ConstraintMatcher::new(&requirement.constraint);
        let index = &self.model.index;
        let known = |known: Option<&Vec<SolvableId>>| known.cloned().unwrap_or_default();
        let installed: Vec<SolvableId> = match &requirement.constraint {
            Constraint::Package { name, .. } => known(self.installed_of.get(name.as_str())),
            Constraint::Api(api) => known(self.installed_with.get(api)),
            Constraint::Label(_)
            | Constraint::All(_)
            | Constraint::Any(_)
            | Constraint::Not(_)
            | Constraint::Cel { .. } => (0..index.problem.query.installed.len()).collect(),
        };
        let mut solvables: Vec<SolvableId> = installed
            .into_iter()
            .filter(|at| {
                let solvable = &self.model.solvables[*at];
                let evaluate = |rule: &str| index.rule_holds(rule, solvable.bundle);
                super::overlap::covers(index, solvable.namespace, namespace)
                    && matcher.holds(solvable.bundle, solvable.package(), &evaluate)
            })
            .collect();
        let mut found: Vec<(&'p str, Vec<Candidate<'p>>)> = Vec::new();
        let covering = || -> Rc<[&'p str]> { super::overlap::covering(index, namespace).into() };
        let places = Rc::clone(self.covering.entry(namespace).or_insert_with(covering));
        for place in places.iter().copied() {
            let requester = Requester { namespace: place, catalog, installed: None };
            found.push((place, candidates::satisfying(index, requester, &requirement.constraint)));
        }
        for (place, found) in found {
            solvables.extend(self.solvables_for(place, &found));
        }
        let solvables: Rc<[SolvableId]> = solvables.into();
        self.known.insert(key, Rc::clone(&solvables));
        solvables
    }
}

/// Returns the installed bundle that each request is about: the one that it names, or the one of its package that
/// follows a channel. One that follows none was not installed by this resolver and stays as it is.
fn claims(requests: &[PackageRequest], installed: &[InstalledBundle]) -> Vec<Option<usize>> {
    let (mut named, mut following) = (BTreeMap::new(), BTreeMap::new());
    for (at, item) in installed.iter().enumerate() {
        named.entry((item.bundle.name.as_str(), item.namespace.as_str())).or_insert(at);
        if let Some(package) = item.package.as_deref().filter(|_| item.follows.is_some()) {
            following.entry((package, item.namespace.as_str())).or_insert(at);
        }
    }
    let claim = |request: &PackageRequest| match &request.installed {
        Some(name) => named.get(&(name.as_str(), request.namespace.as_str())).copied(),
        None => following.get(&(request.package.as_str(), request.namespace.as_str())).copied(),
    };
    requests.iter().map(claim).collect()
}

fn may_stay(request: &PackageRequest, item: &InstalledBundle) -> bool {
    request.version.as_ref().is_none_or(|text| {
        masterminds::Range::parse(text).is_ok_and(|range| range.matches(&item.bundle.version))
    })
}

/// One bundle of a package in a namespace, one provider of an API among operators that watch the
/// same namespaces.
fn exclusions(model: &mut Model<'_>) {
    let mut packages: BTreeMap<_, Vec<SolvableId>> = BTreeMap::new();
    let mut providers: BTreeMap<&Api, Vec<SolvableId>> = BTreeMap::new();
    let is_same = |one: &Solvable<'_>, other: &Solvable<'_>| {
        (one.namespace, one.package()) == (other.namespace, other.package())
    };
    let mut next = 0;
    for bundles in model.solvables.chunk_by(is_same) {
        let ids = next..next + bundles.len();
        next = ids.end;
        if let Some(package) = bundles[0].package() {
            packages.entry((bundles[0].namespace, package)).or_default().extend(ids.clone());
        }
        for (id, solvable) in ids.zip(bundles) {
            for api in &solvable.bundle.provides {
                providers.entry(api).or_default().push(id);
            }
        }
    }
    for ((namespace, package), solvables) in packages {
        if solvables.len() > 1 {
            let why = ExclusionCause::Package { namespace, package };
            model.exclusions.push(MutualExclusion { why, solvables });
        }
    }
    for (api, solvables) in providers {
        for group in super::overlap::groups(model, &solvables) {
            model
                .exclusions
                .push(MutualExclusion { why: ExclusionCause::Api(api), solvables: group });
        }
    }
}
