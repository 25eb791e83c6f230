//! Sentences that refuse a query: the command, the Action and the service say the same.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_content::capability::hint;
use plimsoll_resolve::CatalogPart;

use crate::RequestedPackage;
use crate::install::{InstallError, InstallRequest};

/// Returns the sentence that says why there is no plan.
pub fn refusal(error: &InstallError) -> String {
    match error {
        InstallError::Invalid(why) => why.to_string(),
        InstallError::Blocked { name, block } => {
            format!("{name} cannot be installed: {}", block.message)
        }
        InstallError::Unsatisfiable(conflict) => conflict.message(),
        InstallError::LimitExceeded => {
            "the dependencies are too complex: request fewer packages, or exclude some".to_owned()
        }
    }
}

/// Returns the end of the sentence of [`unknown_package`](crate::install::unknown_package) in a cluster with a
/// catalog that is not served, which may have the package.
pub fn not_served(unavailable: &BTreeMap<String, String>) -> String {
    let first = unavailable.first_key_value();
    first.map_or_else(String::new, |(catalog, why)| {
        format!("; catalog {catalog} is not served: {why}")
    })
}

/// Returns the sentence about the first catalog of a request that does not exist; `None` if all do.
pub fn unknown_catalog(request: &InstallRequest, catalogs: &[CatalogPart]) -> Option<String> {
    let there: BTreeSet<&str> = catalogs.iter().map(|it| it.name.name.as_str()).collect();
    let mut named = [&request.repository, &request.prefer_repository].into_iter().flatten();
    let name = named.find(|it| *it != "same" && !there.contains(it.as_str()))?;
    Some(format!("there is no catalog `{name}`{}", hint(name, there.iter().copied())))
}

/// Returns the sentence about a range for all packages beside a package that has its own; `None` if none has.
/// `option` is what the former is given with.
pub fn range_beside(option: &str, packages: &[RequestedPackage]) -> Option<String> {
    let package = packages.iter().find(|it| it.range.is_some())?;
    Some(format!(
        "{option} cannot be used with `{package}`, which says its versions itself: leave out {option}, or \
         write `{}`",
        package.name
    ))
}
