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

/// Evaluates expressions of [`crate::Constraint::Cel`]; the resolver itself knows no language.
pub trait Expressions {
    /// Compiles a rule and says of each list of properties whether it holds.
    ///
    /// What cannot be evaluated, or costs too much, does not hold.
    ///
    /// # Errors
    /// The reason when the rule does not compile; a bundle that requires it is never selected.
    fn evaluate(&self, rule: &str, candidates: &[&[Property]]) -> Result<Vec<bool>, String>;
}
