//! The index of a problem, for what is found again and again: packages by name, API and label, orders of
//! channels, the truth of expressions.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::{Api, Bundle, Constraint, Property, Requirement};
use crate::catalog::{Expressions, RULES_COST_MAX};
use crate::channel::{ChannelGraph, ChannelOrder, order};
use crate::matching::rules_of;
use crate::package::{Channel, Package};
use crate::problem::{CatalogPart, ChannelPolicy, Problem};

/// See the module.
pub(crate) struct Index<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) packages: Vec<CatalogPackage<'p>>,
    by_name: BTreeMap<&'p str, Vec<usize>>,
    by_api: BTreeMap<&'p Api, Vec<usize>>,
    by_label: BTreeMap<&'p str, Vec<usize>>,
    /// For each rule why it is none, or the bundles that it holds for, by their addresses.
    rules: BTreeMap<&'p str, Result<BTreeSet<usize>, String>>,
    /// The channels that are named for a package in a namespace, by requests or by what is
    /// installed.
    named_channels: BTreeMap<(&'p str, &'p str), BTreeSet<&'p str>>,
}

/// A package of a catalog.
pub(crate) struct CatalogPackage<'p> {
    pub(crate) catalog: &'p CatalogPart,
    pub(crate) package: &'p Package,
    bundles: OnceCell<BTreeMap<&'p str, &'p Bundle>>,
    orders: Vec<OnceCell<ChannelOrder>>,
    graphs: Vec<OnceCell<ChannelGraph>>,
}

impl<'p> CatalogPackage<'p> {
    pub(crate) fn bundle(&self, name: &str) -> Option<&'p Bundle> {
        let by_name = self.bundles.get_or_init(|| {
            // Of two bundles of one name the first is meant.
            let bundles = self.package.bundles.iter().rev();
            bundles.map(|bundle| (bundle.name.as_str(), bundle)).collect()
        });
        by_name.get(name).copied()
    }

    pub(crate) fn order(&self, channel: usize) -> &ChannelOrder {
        self.orders[channel].get_or_init(|| order(&self.package.channels[channel]))
    }

    pub(crate) fn graph(&self, channel: usize) -> &ChannelGraph {
        self.graphs[channel].get_or_init(|| {
            let version = |name: &str| self.bundle(name).map(|bundle| &bundle.version);
            ChannelGraph::new(&self.package.channels[channel], &version)
        })
    }

    /// The channels that were looked at and have no order, with the reasons.
    pub(crate) fn broken_channels(&self) -> impl Iterator<Item = (&'p str, &str)> {
        let channels = self.package.channels.iter().zip(&self.orders);
        channels.filter_map(|(channel, order)| {
            Some((channel.name.as_str(), order.get()?.broken.as_deref()?))
        })
    }

    /// The channel that is meant when none is named.
    pub(crate) fn default_channel(&self) -> Option<&'p str> {
        match (&self.package.default_channel, self.package.channels.as_slice()) {
            (Some(name), _) => Some(name),
            (None, [only]) => Some(&only.name),
            (None, _) => None,
        }
    }
}

impl<'p> Index<'p> {
    pub(crate) fn new(problem: &'p Problem, expressions: &dyn Expressions) -> Self {
        let mut index = Self {
            problem,
            packages: Vec::new(),
            by_name: BTreeMap::new(),
            by_api: BTreeMap::new(),
            by_label: BTreeMap::new(),
            rules: evaluate_rules(problem, expressions),
            named_channels: named_channels(problem),
        };
        for catalog in &problem.catalogs {
            for package in &catalog.packages {
                index.add(catalog, package);
            }
        }
        index
    }

    fn add(&mut self, catalog: &'p CatalogPart, package: &'p Package) {
        let at = self.packages.len();
        let orders = package.channels.iter().map(|_| OnceCell::new()).collect();
        let graphs = package.channels.iter().map(|_| OnceCell::new()).collect();
        let bundles = OnceCell::new();
        self.packages.push(CatalogPackage { catalog, package, bundles, orders, graphs });
        self.by_name.entry(&package.name).or_default().push(at);
        let mut apis = BTreeSet::new();
        let mut labels = BTreeSet::new();
        for bundle in &package.bundles {
            apis.extend(&bundle.provides);
            labels.extend(bundle.labels.iter().map(String::as_str));
        }
        for api in apis {
            self.by_api.entry(api).or_default().push(at);
        }
        for label in labels {
            self.by_label.entry(label).or_default().push(at);
        }
    }

    /// The packages of a name, one of each catalog that has it.
    pub(crate) fn named(&self, name: &str) -> &[usize] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The packages in which a constraint may hold for some bundle.
    pub(crate) fn packages_for(&self, constraint: &Constraint) -> BTreeSet<usize> {
        let found = |packages: Option<&Vec<usize>>| {
            packages.into_iter().flatten().copied().collect::<BTreeSet<usize>>()
        };
        match constraint {
            Constraint::Api(api) => found(self.by_api.get(api)),
            Constraint::Package { name, .. } => self.named(name).iter().copied().collect(),
            Constraint::Label(label) => found(self.by_label.get(label.as_str())),
            Constraint::All(members) => {
                let sets = members.iter().map(|member| self.packages_for(&member.constraint));
                sets.min_by_key(BTreeSet::len).unwrap_or_else(|| self.everything())
            }
            Constraint::Any(members) => {
                members.iter().flat_map(|member| self.packages_for(&member.constraint)).collect()
            }
            Constraint::Not(_) | Constraint::Cel { .. } => self.everything(),
        }
    }

    fn everything(&self) -> BTreeSet<usize> {
        (0..self.packages.len()).collect()
    }

    /// Returns whether an expression holds for a bundle of the problem.
    pub(crate) fn rule_holds(&self, rule: &str, bundle: &Bundle) -> bool {
        let truths = self.rules.get(rule).and_then(|truths| truths.as_ref().ok());
        truths.is_some_and(|truths| truths.contains(&address(bundle)))
    }

    /// Returns why an expression of a requirement is none.
    pub(crate) fn rule_error(&self, requirement: &Requirement) -> Option<&str> {
        let mut rules = rules_of(requirement).into_iter();
        rules.find_map(|rule| self.rules.get(rule)?.as_ref().err().map(String::as_str))
    }

    /// Returns whether a namespace sees a catalog.
    pub(crate) fn sees(&self, namespace: &str, catalog: &CatalogPart) -> bool {
        let global = &self.problem.query.global_namespaces;
        let theirs = &catalog.name.namespace;
        global.is_empty() || theirs == namespace || global.contains(theirs)
    }

    /// Returns whether a request or what is installed names a channel of a package in a namespace.
    pub(crate) fn is_channel_named(&self, namespace: &str, package: &str) -> bool {
        self.named_channels.contains_key(&(namespace, package))
    }

    /// The channels of a package that count in a namespace, the most preferred first: those that
    /// are named there; else the default one, and with [`ChannelPolicy::PreferDefault`] the
    /// others by name.
    pub(crate) fn channels(&self, namespace: &str, package_id: usize) -> Vec<usize> {
        let package = self.packages[package_id].package;
        let default = self.packages[package_id].default_channel();
        let named = self.named_channels.get(&(namespace, package.name.as_str()));
        let counts = |channel: &Channel| match (named, self.problem.query.channels) {
            (Some(named), _) => named.contains(channel.name.as_str()),
            (None, ChannelPolicy::DefaultOnly) => Some(channel.name.as_str()) == default,
            (None, ChannelPolicy::PreferDefault) => true,
        };
        let mut channels: Vec<usize> =
            (0..package.channels.len()).filter(|at| counts(&package.channels[*at])).collect();
        channels.sort_by_key(|at| {
            let name = package.channels[*at].name.as_str();
            (Some(name) != default, name)
        });
        channels
    }
}

fn named_channels(problem: &Problem) -> BTreeMap<(&str, &str), BTreeSet<&str>> {
    let mut named: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for request in &problem.query.requests {
        if let Some(channel) = &request.channel {
            let key = (request.namespace.as_str(), request.package.as_str());
            named.entry(key).or_default().insert(channel);
        }
    }
    for item in &problem.query.installed {
        if let (Some(package), Some(follows)) = (&item.package, &item.follows) {
            let key = (item.namespace.as_str(), package.as_str());
            named.entry(key).or_insert_with(|| BTreeSet::from([follows.channel.as_str()]));
        }
    }
    named
}

fn evaluate_rules<'p>(
    problem: &'p Problem,
    expressions: &dyn Expressions,
) -> BTreeMap<&'p str, Result<BTreeSet<usize>, String>> {
    let bundles: Vec<&Bundle> = bundles(problem).collect();
    let requirements = bundles.iter().flat_map(|bundle| &bundle.requires);
    let rules: BTreeSet<&str> = requirements.flat_map(rules_of).collect();
    if rules.is_empty() {
        return BTreeMap::new();
    }
    let candidates: Vec<&[Property]> =
        bundles.iter().map(|bundle| bundle.properties.as_slice()).collect();
    let mut cost_left = RULES_COST_MAX;
    let mut evaluate = |rule| {
        let truths: Vec<bool> = expressions.evaluate(rule, &candidates, &mut cost_left)?;
        let holding = bundles.iter().zip(truths).filter(|(_, holds)| *holds);
        Ok(holding.map(|(bundle, _)| address(bundle)).collect())
    };
    rules.into_iter().map(|rule| (rule, evaluate(rule))).collect()
}

fn bundles(problem: &Problem) -> impl Iterator<Item = &Bundle> {
    let packages = problem.catalogs.iter().flat_map(|catalog| &catalog.packages);
    let offered = packages.flat_map(|package| &package.bundles);
    offered.chain(problem.query.installed.iter().map(|item| &item.bundle))
}

/// Identifies a bundle of a problem, which stays where it is while the index lives.
fn address(bundle: &Bundle) -> usize {
    std::ptr::from_ref(bundle).addr()
}
