//! The interface between loaded catalogs and the resolver.

use crate::bundle::{Api, Property};
use crate::package::Package;

/// A loaded catalog, as an index: a query about one package touches that package only.
///
/// Names may come in any order and more than once; what the resolver makes of them does not
/// depend on it.
pub trait Catalog {
    /// The package of a name, with everything that resolution needs except
    /// [`crate::Bundle::properties`].
    fn package(&self, name: &str) -> Option<Package>;

    /// The names of the packages of which some bundle provides an API (`olm.gvk`).
    fn providers(&self, api: &Api) -> Vec<&str>;

    /// The names of the packages of which some bundle has a label (`olm.label`).
    fn labelled(&self, label: &str) -> Vec<&str>;

    /// The names of all packages, for constraints that name neither a package nor an API.
    fn packages(&self) -> Vec<&str>;

    /// The same with [`crate::Bundle::properties`], for expressions: of all bundles at once, since a
    /// catalog may have to read the whole package for one of them.
    fn package_with_properties(&self, name: &str) -> Option<Package>;

    /// All properties of a bundle, for expressions. None when there is no such bundle.
    fn properties(&self, package: &str, bundle: &str) -> Option<Vec<Property>>;
}

/// A catalog with its name and rank.
#[derive(Clone, Copy)]
pub struct CatalogSource<'a> {
    /// Its name, unique in its namespace.
    pub name: &'a str,
    /// The namespace that it is offered in.
    pub namespace: &'a str,
    /// The lower, the more it is preferred (DEP-15; upstream's `priority` is its negative).
    pub weight: i64,
    /// What it contains.
    pub catalog: &'a dyn Catalog,
}

/// Most that the evaluation of all rules together may cost in a resolution, in units of which a step of
/// an expression costs one: some ten seconds. A rule over the largest catalogs that there are (some
/// 10,000 bundles) costs about a million.
pub const RULES_COST_MAX: u64 = 100_000_000;

/// Evaluates expressions of [`crate::Constraint::Cel`]; the resolver itself knows no language.
pub trait Expressions {
    /// Compiles a rule and says of each list of properties whether it holds.
    ///
    /// What cannot be evaluated, or costs too much by itself, does not hold. The cost, of which each list
    /// has some, is taken off `cost_left`.
    ///
    /// # Errors
    /// The reason when the rule does not compile or nothing is left; a bundle that requires it is never
    /// selected.
    fn evaluate(
        &self,
        rule: &str,
        candidates: &[&[Property]],
        cost_left: &mut u64,
    ) -> Result<Vec<bool>, String>;
}
