//! One order for everything in a problem, so that the order of its input does not matter.

use super::{CatalogPart, InstalledBundle, Problem, Query};
use crate::bundle::{Bundle, Constraint, Requirement};
use crate::package::Package;

impl Problem {
    /// Puts everything whose order means nothing into one order, and removes what is said twice.
    ///
    /// What is left of two packages, channels or bundles of one name is decided by what they
    /// contain, not by which came first.
    pub fn canonicalize(&mut self) {
        self.query.canonicalize();
        self.catalogs
            .sort_by(|left, right| (&left.name, left.weight).cmp(&(&right.name, right.weight)));
        for catalog in &mut self.catalogs {
            catalog.canonicalize();
        }
    }
}

impl Query {
    /// See [`Problem::canonicalize`]; the order of [`super::ResolutionOverrides::prefer_catalogs`] stays.
    pub(crate) fn canonicalize(&mut self) {
        let Self {
            facts,
            operator_groups,
            global_namespaces,
            installed,
            requests,
            channels: _,
            overrides,
        } = self;
        if let Some(apis) = &mut facts.apis {
            unique(apis);
        }
        if let Some(capabilities) = &mut facts.capabilities {
            unique(capabilities);
        }
        unique(&mut facts.architectures);
        for group in operator_groups.iter_mut() {
            unique(&mut group.targets);
        }
        unique(operator_groups);
        unique(global_namespaces);
        for item in installed.iter_mut() {
            item.bundle.canonicalize();
        }
        installed.sort_by_cached_key(key_of_installed);
        installed.dedup();
        unique(requests);
        unique(&mut overrides.providers);
        unique(&mut overrides.exclude);
    }
}

impl CatalogPart {
    fn canonicalize(&mut self) {
        for package in &mut self.packages {
            package.canonicalize();
        }
        self.packages.sort_by(|left, right| left.name.cmp(&right.name));
        self.packages.dedup_by(|next, first| next.name == first.name);
    }
}

impl Package {
    /// See [`Problem::canonicalize`].
    fn canonicalize(&mut self) {
        for channel in &mut self.channels {
            for entry in &mut channel.entries {
                unique(&mut entry.skips);
            }
            unique(&mut channel.entries);
        }
        self.channels
            .sort_by(|left, right| (&left.name, &left.entries).cmp(&(&right.name, &right.entries)));
        for bundle in &mut self.bundles {
            bundle.canonicalize();
        }
        self.bundles
            .sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
    }
}

impl Bundle {
    fn canonicalize(&mut self) {
        unique(&mut self.provides);
        self.requires.iter_mut().for_each(order_members);
        unique(&mut self.requires);
        unique(&mut self.labels);
        if let Some(modes) = &mut self.install_modes {
            unique(modes);
        }
        unique(&mut self.native_apis);
        unique(&mut self.architectures);
        unique(&mut self.capabilities);
        unique(&mut self.defects);
        if self.properties.len() > 1 {
            self.properties
                .sort_by_cached_key(|property| (property.kind.clone(), property.value.to_string()));
        }
    }
}

/// The members of a compound constraint have no order.
fn order_members(requirement: &mut Requirement) {
    match &mut requirement.constraint {
        Constraint::All(members) | Constraint::Any(members) | Constraint::Not(members) => {
            members.iter_mut().for_each(order_members);
            unique(members);
        }
        Constraint::Api(_)
        | Constraint::Package { .. }
        | Constraint::Label(_)
        | Constraint::Cel { .. } => {}
    }
}

fn key_of_installed(item: &InstalledBundle) -> (String, String, Option<String>, String) {
    let rest = serde_json::to_string(item).unwrap_or_default();
    (item.namespace.clone(), item.bundle.name.clone(), item.package.clone(), rest)
}

fn unique<T: Ord>(items: &mut Vec<T>) {
    if items.len() > 1 {
        items.sort();
        items.dedup();
    }
}
