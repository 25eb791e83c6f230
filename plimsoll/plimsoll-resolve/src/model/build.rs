//! Builds a model: from the requests and what is installed along everything that they may need.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::candidates::{self, Candidate, Seeker, provider_allowed};
use super::eligibility::unfit;
use super::{
    Choice, ChoiceId, Exclusive, Index, Model, Node, NodeId, Offer, Owner, Place, Rivalry,
};
use crate::bundle::{Api, Requirement};
use crate::matching::{Test, served};
use crate::problem::{InstalledBundle, PackageRequest};
use crate::range::masterminds;

pub(super) fn build(index: Index<'_>) -> Model<'_> {
    let mut builder = Builder {
        model: Model {
            index,
            nodes: Vec::new(),
            choices: Vec::new(),
            roots: 0,
            needs: Vec::new(),
            exclusions: Vec::new(),
        },
        offered: BTreeMap::new(),
        known: BTreeMap::new(),
    };
    builder.installed();
    builder.roots();
    let mut next = 0;
    while next < builder.model.nodes.len() {
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
    /// The node of a namespace, shelf, channel and entry.
    offered: BTreeMap<(&'p str, usize, usize, usize), NodeId>,
    /// What satisfies a requirement for a namespace and a catalog.
    known: BTreeMap<Sought<'p>, Rc<[NodeId]>>,
}

impl<'p> Builder<'p> {
    /// What is installed are the first nodes, in its order.
    fn installed(&mut self) {
        for item in &self.model.problem().query.installed {
            self.model.nodes.push(Node {
                namespace: &item.namespace,
                bundle: &item.bundle,
                place: Place::Installed(item),
                unfit: None,
            });
        }
    }

    fn roots(&mut self) {
        let query = &self.model.problem().query;
        let claims: Vec<Option<usize>> =
            query.requests.iter().map(|request| claim(request, &query.installed)).collect();
        for (at, item) in query.installed.iter().enumerate() {
            if !claims.contains(&Some(at)) && item.follows.is_none() {
                self.choose(Owner::Stays(at), Rc::from([at]));
            }
        }
        for (at, request) in query.requests.iter().enumerate() {
            let claimed = claims[at].map(|at| (at, &query.installed[at]));
            let item = claimed.map(|(_, item)| item);
            let found = candidates::requested(&self.model.index, request, item);
            let mut nodes = self.offers(&request.namespace, &found);
            if let Some((at, item)) = claimed {
                self.succession(at, &nodes);
                if may_stay(request, item) {
                    nodes.push(at);
                }
            }
            self.choose(Owner::Request(at), nodes.into());
        }
        for (at, item) in query.installed.iter().enumerate() {
            if !claims.contains(&Some(at)) && item.follows.is_some() {
                let found = candidates::following(&self.model.index, item);
                let mut nodes = self.offers(&item.namespace, &found);
                self.succession(at, &nodes);
                nodes.insert(0, at);
                self.choose(Owner::Follows(at), nodes.into());
            }
        }
        self.model.roots = self.model.choices.len();
    }

    /// What takes the place of something does not stand beside it. For those of one package that
    /// is so anyway.
    fn succession(&mut self, installed: NodeId, updates: &[NodeId]) {
        let package = self.model.nodes[installed].package();
        for update in updates {
            if package.is_none() || self.model.nodes[*update].package() != package {
                let nodes = vec![installed, *update];
                self.model.exclusions.push(Exclusive { why: Rivalry::Succession, nodes });
            }
        }
    }

    fn choose(&mut self, owner: Owner, candidates: Rc<[NodeId]>) -> ChoiceId {
        self.model.choices.push(Choice { owner, candidates });
        self.model.choices.len() - 1
    }

    fn offers(&mut self, namespace: &'p str, found: &[Candidate<'p>]) -> Vec<NodeId> {
        found.iter().map(|candidate| self.offer(namespace, candidate)).collect()
    }

    fn offer(&mut self, namespace: &'p str, candidate: &Candidate<'p>) -> NodeId {
        let Candidate { shelf, channel, entry, .. } = *candidate;
        if let Some(node) = self.offered.get(&(namespace, shelf, channel, entry)) {
            return *node;
        }
        let index = &self.model.index;
        let shown = &index.shelves[shelf];
        let of = &shown.package.channels[channel];
        let bundle = shown
            .bundle(&of.entries[entry].name)
            .expect("candidates are entries whose bundle was found");
        let node = Node {
            namespace,
            bundle,
            place: Place::Offered(Offer {
                catalog: shown.catalog,
                package: shown.package,
                channel: of,
                entry: &of.entries[entry],
            }),
            unfit: unfit(index, namespace, &shown.package.name, bundle),
        };
        self.model.nodes.push(node);
        self.offered.insert((namespace, shelf, channel, entry), self.model.nodes.len() - 1);
        self.model.nodes.len() - 1
    }

    /// Adds the choices of a node.
    fn needs(&mut self, id: NodeId) {
        let node = &self.model.nodes[id];
        let ignored = match node.place {
            Place::Installed(item) => item.ignore_dependencies,
            Place::Offered(_) => node.unfit.is_some() || self.ignores_dependencies(id),
        };
        let bundle = node.bundle;
        let mut needs = Vec::new();
        if !ignored {
            for (at, requirement) in bundle.requires.iter().enumerate() {
                if !self.satisfied_by_itself(id, requirement) {
                    let found = self.satisfying(id, requirement);
                    needs.push(self.choose(Owner::Node(id, at), found));
                }
            }
        }
        debug_assert_eq!(self.model.needs.len(), id, "nodes get their needs in their order");
        self.model.needs.push(needs);
    }

    /// Whether the request for it says to install it without its dependencies.
    fn ignores_dependencies(&self, id: NodeId) -> bool {
        let node = &self.model.nodes[id];
        self.model.problem().query.requests.iter().any(|request| {
            request.ignore_dependencies
                && request.namespace == node.namespace
                && Some(request.package.as_str()) == node.package()
        })
    }

    /// Whether the cluster, or the bundle that requires it, satisfies a requirement.
    fn satisfied_by_itself(&self, id: NodeId, requirement: &Requirement) -> bool {
        let node = &self.model.nodes[id];
        let index = &self.model.index;
        let facts = &index.problem.query.facts;
        if facts.apis.as_ref().is_some_and(|apis| served(&requirement.constraint, apis)) {
            return true;
        }
        let test = Test::new(&requirement.constraint);
        let evaluate = |rule: &str| index.rule_holds(rule, node.bundle);
        if !test.holds(node.bundle, node.package(), &evaluate) {
            return false;
        }
        let Some(offer) = node.offer() else { return true };
        let mut shelves = index.named(&offer.package.name).iter();
        let own = |shelf: &&usize| std::ptr::eq(index.shelves[**shelf].package, offer.package);
        shelves
            .find(own)
            .is_none_or(|shelf| provider_allowed(index, &requirement.constraint, *shelf))
    }

    /// What is installed comes before everything that is not.
    fn satisfying(&mut self, id: NodeId, requirement: &'p Requirement) -> Rc<[NodeId]> {
        let node = &self.model.nodes[id];
        let namespace = node.namespace;
        let catalog = node.offer().map(|offer| offer.catalog);
        let key = (namespace, catalog.map(|it| std::ptr::from_ref(it).addr()), requirement);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let test = Test::new(&requirement.constraint);
        let index = &self.model.index;
        let mut nodes: Vec<NodeId> = (0..index.problem.query.installed.len())
            .filter(|at| {
                let node = &self.model.nodes[*at];
                let evaluate = |rule: &str| index.rule_holds(rule, node.bundle);
                node.namespace == namespace && test.holds(node.bundle, node.package(), &evaluate)
            })
            .collect();
        let seeker = Seeker { namespace, catalog };
        let found = candidates::satisfying(index, seeker, &requirement.constraint);
        nodes.extend(self.offers(namespace, &found));
        let nodes: Rc<[NodeId]> = nodes.into();
        self.known.insert(key, Rc::clone(&nodes));
        nodes
    }
}

/// What of the installed a request is about: what it names, or what is of its package and follows
/// a channel. What follows none was installed by somebody else and stays as it is.
fn claim(request: &PackageRequest, installed: &[InstalledBundle]) -> Option<usize> {
    let here = |item: &InstalledBundle| item.namespace == request.namespace;
    match &request.installed {
        Some(name) => installed.iter().position(|item| here(item) && item.bundle.name == *name),
        None => installed.iter().position(|item| {
            here(item) && item.follows.is_some() && item.package.as_ref() == Some(&request.package)
        }),
    }
}

fn may_stay(request: &PackageRequest, item: &InstalledBundle) -> bool {
    request.version.as_ref().is_none_or(|text| {
        masterminds::Range::parse(text).is_ok_and(|range| range.matches(&item.bundle.version))
    })
}

/// One bundle of a package in a namespace, one provider of an API among operators that watch the
/// same namespaces.
fn exclusions(model: &mut Model<'_>) {
    let mut packages: BTreeMap<_, Vec<NodeId>> = BTreeMap::new();
    let mut providers: BTreeMap<&Api, Vec<NodeId>> = BTreeMap::new();
    for (id, node) in model.nodes.iter().enumerate() {
        if let Some(package) = node.package() {
            packages.entry((node.namespace, package)).or_default().push(id);
        }
        for api in &node.bundle.provides {
            providers.entry(api).or_default().push(id);
        }
    }
    for ((namespace, package), nodes) in packages {
        if nodes.len() > 1 {
            let why = Rivalry::Package { namespace, package };
            model.exclusions.push(Exclusive { why, nodes });
        }
    }
    for (api, nodes) in providers {
        for group in super::overlap::groups(model, &nodes) {
            model.exclusions.push(Exclusive { why: Rivalry::Api(api), nodes: group });
        }
    }
}
