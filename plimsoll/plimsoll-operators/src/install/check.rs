//! Requests that cannot be meant: names of nothing, and packages that are named twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use plimsoll_content::capability::hint;
use plimsoll_resolve::{Api, Bundle, CatalogPart, ProviderChoice};

use super::{InstallError, InstallRequest};
use crate::selection::candidates;
use crate::{OperatorBlock, OperatorInputs, RequestedOperator};

/// The reason that a request is refused before anything is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// A package is named twice.
    Twice {
        /// The name of the package.
        name: String,
        /// The ranges that it is named with.
        ranges: Vec<String>,
    },
    /// No catalog has a package in the requested channel, catalog and range.
    NotOffered {
        /// The name of the package.
        name: String,
        /// What is there instead.
        block: OperatorBlock,
    },
    /// An excluded package, or one of a chosen provider, does not exist.
    NoPackage {
        /// What cannot be done, such as "cannot exclude `foo`".
        refused: String,
        /// The name of the package.
        name: String,
        /// The sentence that says so, with what may be meant.
        unknown: String,
    },
    /// Nothing provides or requires the API of a chosen provider.
    NoApi {
        /// What cannot be done, such as "cannot use `example.com/v1/Foo=bar`".
        refused: String,
        /// The API, as GROUP/VERSION/KIND.
        api: String,
        /// The sentence that says so, with what may be meant.
        unknown: String,
    },
    /// An excluded bundle does not exist; the text is the reason.
    Exclusion(String),
    /// A chosen provider cannot be read, or provides nothing; the text is the reason.
    Provider(String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { name, ranges } if ranges.is_empty() => {
                write!(to, "{name} is named twice: name it once")
            }
            Self::Twice { name, ranges } => {
                write!(to, "{name} is named twice, with {}: name it once", ranges.join(" and "))
            }
            Self::NotOffered { block, .. } => to.write_str(&block.message),
            Self::NoPackage { refused, unknown, .. } | Self::NoApi { refused, unknown, .. } => {
                write!(to, "{refused}: {unknown}")
            }
            Self::Exclusion(message) | Self::Provider(message) => to.write_str(message),
        }
    }
}

impl InstallError {
    /// Returns the API that nothing provides or requires, as far as the catalogs are known that were read; `None` if
    /// the error is about something else.
    pub fn unknown_api(&self) -> Option<&str> {
        match self {
            Self::Invalid(RequestError::NoApi { api, .. }) => Some(api),
            _ => None,
        }
    }

    /// Returns the error with another sentence about that API, if it is about one: what is said where more than a part
    /// of the catalogs is known; `None` to leave it.
    #[must_use]
    pub fn explained_api(mut self, sentence: Option<String>) -> Self {
        if let Self::Invalid(RequestError::NoApi { unknown, .. }) = &mut self
            && let Some(sentence) = sentence
        {
            *unknown = sentence;
        }
        self
    }
}

impl InstallRequest {
    /// Checks whether the request names what exists.
    ///
    /// # Errors
    ///
    /// The first name that does not, or a package that is named twice.
    pub fn check(
        &self,
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
    ) -> Result<(), RequestError> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.names().find(|it| !seen.insert(*it)) {
            let of = self.packages.iter().filter(|it| it.name == twice);
            let ranges = of.filter_map(|it| it.range.clone()).collect();
            return Err(RequestError::Twice { name: twice.to_owned(), ranges });
        }
        for name in self.names() {
            self.check_package(inputs, catalogs, name)?;
        }
        self.exclude.iter().try_for_each(|it| check_exclusion(catalogs, it))?;
        self.providers.iter().try_for_each(|it| choices(it, catalogs).map(drop))
    }

    /// Checks whether the catalogs offer a package as it is requested, whatever is installed of it.
    fn check_package(
        &self,
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
        name: &str,
    ) -> Result<(), RequestError> {
        let there = inputs.operators.get(name);
        let installed = there.and_then(|it| it.installed.as_ref());
        // An Operator that waits keeps its range if no other one is requested.
        let waits = there.filter(|it| it.installed.is_none());
        let range = self.range_of(name).or(waits.map(|it| it.spec.version.as_str()));
        let (channel, repository) = (self.channel_of(name), self.repository_of(name));
        let mut spec = there.map(|it| it.spec.clone()).unwrap_or_default();
        range.unwrap_or_default().clone_into(&mut spec.version);
        if let Some(channel) = channel {
            channel.clone_into(&mut spec.channel);
        }
        if let Some(repository) = repository {
            repository.clone_into(&mut spec.repository);
        }
        if installed.is_some_and(|it| it.is_requested_by(&spec)) {
            return Ok(());
        }
        let mut wanted = RequestedOperator::new(spec, false);
        // What is installed counts for where it is from.
        if channel.is_none() && repository.is_none() {
            wanted.installed = installed.cloned();
        }
        let Err(block) = candidates(inputs, catalogs, name, &wanted) else { return Ok(()) };
        if block.is_not_offered() {
            return Err(RequestError::NotOffered { name: name.to_owned(), block });
        }
        Ok(())
    }
}

/// Checks whether an exclusion names something.
fn check_exclusion(catalogs: &[CatalogPart], text: &str) -> Result<(), RequestError> {
    let (package, bundle) = match text.split_once('/') {
        Some((package, bundle)) => (package, Some(bundle)),
        None => (text, None),
    };
    let known = catalogs.iter().flat_map(|it| &it.packages);
    let of: Vec<_> = known.filter(|it| it.name == package).collect();
    if of.is_empty() {
        return Err(no_package(format!("cannot exclude `{text}`"), package, catalogs));
    }
    let bundles = of.iter().flat_map(|it| &it.bundles).map(|it| it.name.as_str());
    match bundle {
        Some(bundle) if !bundles.clone().any(|it| it == bundle) => {
            let hint = hint_of(bundle, bundles);
            let message =
                format!("cannot exclude `{text}`: {package} has no bundle `{bundle}`{hint}");
            Err(RequestError::Exclusion(message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the error about a package that no catalog has; `catalogs` are the known parts of them.
fn no_package(refused: String, name: &str, catalogs: &[CatalogPart]) -> RequestError {
    let known = catalogs.iter().flat_map(|it| &it.packages).map(|it| it.name.as_str());
    RequestError::NoPackage {
        refused,
        name: name.to_owned(),
        unknown: unknown_package(name, known),
    }
}

/// Returns the sentence about a package that no catalog has; `offered` are the packages that there are.
pub fn unknown_package<'n>(name: &str, offered: impl IntoIterator<Item = &'n str>) -> String {
    format!("no catalog has package `{name}`{}", hint_of(name, offered.into_iter()))
}

/// Returns the end of a message that names what may be meant, of names in any order.
fn hint_of<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: BTreeSet<&str> = known.collect();
    hint(wanted, known.iter().copied())
}

/// Parses a chosen provider: of an API by its name, or of all APIs that a package provides.
pub(super) fn choices(
    text: &str,
    catalogs: &[CatalogPart],
) -> Result<Vec<ProviderChoice>, RequestError> {
    let invalid = |message: String| Err(RequestError::Provider(message));
    let Some((provided, package)) = text.split_once('=') else {
        return invalid(format!(
            "`{text}` is not of the form PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE"
        ));
    };
    let packages = catalogs.iter().flat_map(|it| &it.packages);
    let bundles = packages.clone().flat_map(|it| &it.bundles);
    let names: Vec<&str> = provided.split('/').collect();
    let apis: BTreeSet<Api> = match names.as_slice() {
        [group, version, kind] => BTreeSet::from([Api {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
        }]),
        [name] => {
            let of = packages.clone().filter(|it| it.name == *name).flat_map(|it| &it.bundles);
            of.flat_map(|it| it.provides.clone()).collect()
        }
        _ => return invalid(format!("`{provided}` is neither a package nor GROUP/VERSION/KIND")),
    };
    let is_there = |name: &str| packages.clone().any(|it| it.name == name);
    let no_package = |name| no_package(format!("cannot use `{text}`"), name, catalogs);
    if apis.is_empty() {
        return match is_there(provided) {
            true => invalid(format!("cannot use `{text}`: {provided} provides no API")),
            false => Err(no_package(provided)),
        };
    }
    if names.len() > 1 {
        let known: BTreeMap<String, &Api> =
            bundles.flat_map(apis_of).map(|it| (api_text(it), it)).collect();
        if !known.contains_key(provided) {
            let hint = hint(provided, known.keys().map(String::as_str));
            return Err(RequestError::NoApi {
                refused: format!("cannot use `{text}`"),
                api: provided.to_owned(),
                unknown: format!("nothing provides or requires `{provided}`{hint}"),
            });
        }
    }
    if !is_there(package) {
        return Err(no_package(package));
    }
    let choice = |api| ProviderChoice { api, package: package.to_owned(), catalog: None };
    Ok(apis.into_iter().map(choice).collect())
}

/// Returns the APIs that a bundle provides or requires.
fn apis_of(bundle: &Bundle) -> impl Iterator<Item = &Api> {
    let required = plimsoll_resolve::requirement::RequiredNames::of(bundle).apis;
    bundle.provides.iter().chain(required)
}

fn api_text(api: &Api) -> String {
    format!("{}/{}/{}", api.group, api.version, api.kind)
}
