//! Queries to the resolver, and their answers: what `operator resolve --dry-run` prints, the `resolution` Action
//! reports and the service of the controller sends is made here, so that it is the same byte for byte
//! (OPR-21, OPR-22).

mod parameters;
mod refusals;
pub mod values;

use std::collections::{BTreeMap, BTreeSet};

use k8s_cel::names;
use plimsoll_api::olm::CollisionProtection;
use plimsoll_resolve::CatalogPart;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::parameters::{check_parameter, set_parameter};
pub use self::refusals::{not_served, range_beside, refusal, unknown_catalog};
use super::change_plan::ChangePlan;
pub use super::install::unknown_package;
use super::install::{InstallError, InstallRequest, plan_install};
use super::{OperatorInputs, RequestedPackage};

/// A query: a request to install packages, as JSON or as the parameters of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResolutionQuery {
    /// The packages, each as `NAME` or `NAME@RANGE`.
    pub packages: Vec<String>,
    /// The range of the packages that have none of their own; `None` to pin the newest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_range: Option<String>,
    /// The channel to install the packages from; `None` for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The name of the catalog to install the packages from; `None` for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The namespace to install the packages into; `None` for the one that their bundles suggest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What becomes of objects that exist; `None` if they stop the installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_protection: Option<String>,
    /// The chosen providers of requirements: `PACKAGE=PACKAGE` or `GROUP/VERSION/KIND=PACKAGE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// The excluded packages and bundles: `PACKAGE` or `PACKAGE/BUNDLE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The catalog to prefer for dependencies; `same` for that of `repository`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer_repository: Option<String>,
    /// Whether to install the packages without their dependencies.
    pub no_dependencies: bool,
}

/// The parameters of a URL that a query may have.
const PARAMETERS: [&str; 10] = [
    "package",
    "versionRange",
    "channel",
    "repository",
    "namespace",
    "collisionProtection",
    "provider",
    "exclude",
    "preferRepository",
    "noDependencies",
];
/// The maximum number of providers, and of exclusions, of a query: each may be left out for a trial to explain a
/// conflict.
const OVERRIDES_MAX: usize = 64;

impl ResolutionQuery {
    /// Reads a query from JSON.
    ///
    /// # Errors
    ///
    /// When the text is not JSON, or has a field that is unknown or of another type; the message names it.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let query: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let cause = error.into_inner();
            if path == "." { cause.to_string() } else { format!("{path}: {cause}") }
        })?;
        json.end().map_err(|error| error.to_string())?;
        Ok(query)
    }

    /// Reads a query from the parameters of a URL.
    ///
    /// # Errors
    ///
    /// When a parameter is unknown, has no value, is given twice though it has one value, or is neither `true` nor
    /// `false` though it has to be.
    pub fn from_parameters<'p>(
        parameters: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> Result<Self, String> {
        let (mut query, mut no_dependencies) = (Self::default(), None);
        for (name, value) in parameters {
            check_parameter(name, value, &PARAMETERS)?;
            let text = value.to_owned();
            let single = match name {
                "package" => {
                    query.packages.push(text);
                    continue;
                }
                "provider" => {
                    query.providers.push(text);
                    continue;
                }
                "exclude" => {
                    query.exclude.push(text);
                    continue;
                }
                "noDependencies" => {
                    set_parameter(name, &mut no_dependencies, flag(name, value)?)?;
                    continue;
                }
                "versionRange" => &mut query.version_range,
                "channel" => &mut query.channel,
                "repository" => &mut query.repository,
                "namespace" => &mut query.namespace,
                "collisionProtection" => &mut query.collision_protection,
                _ => &mut query.prefer_repository,
            };
            set_parameter(name, single, text)?;
        }
        query.no_dependencies = no_dependencies.unwrap_or_default();
        Ok(query)
    }

    /// Returns the request.
    ///
    /// # Errors
    ///
    /// When no package is named, a name or range cannot be read, a package has a range of its own beside that of
    /// all, there are too many overrides, or no object could have a value.
    pub fn request(&self) -> Result<InstallRequest, String> {
        if self.packages.is_empty() {
            return Err("no package is requested: name at least one, as NAME or NAME@RANGE".into());
        }
        let packages: Result<Vec<RequestedPackage>, String> =
            self.packages.iter().map(|it| it.parse()).collect();
        let packages = packages?;
        if let Some(range) = &self.version_range {
            plimsoll_resolve::range::masterminds::Range::parse(range)
                .map_err(|error| format!("versionRange: {error}"))?;
            range_beside("versionRange", &packages).map_or(Ok(()), Err)?;
        }
        self.check_values()?;
        self.check_overrides()?;
        Ok(InstallRequest {
            packages,
            version_range: self.version_range.clone(),
            declared: BTreeMap::new(),
            channel: self.channel.clone(),
            repository: self.repository.clone(),
            namespace: self.namespace.clone(),
            collision_protection: self.collision_protection.clone(),
            providers: self.providers.clone(),
            exclude: self.exclude.clone(),
            prefer_repository: self.prefer_repository.clone(),
            no_dependencies: self.no_dependencies,
        })
    }

    /// Checks the chosen providers and what is excluded.
    fn check_overrides(&self) -> Result<(), String> {
        for (name, texts) in [("providers", &self.providers), ("exclusions", &self.exclude)] {
            let count = texts.len();
            if count > OVERRIDES_MAX {
                return Err(format!(
                    "there are {count} {name}, and a query may have {OVERRIDES_MAX}: `kubectl operator resolve` \
                     takes any number"
                ));
            }
        }
        self.providers.iter().try_for_each(|it| values::provider(it).map(drop))?;
        self.exclude.iter().try_for_each(|it| {
            values::exclusion(it).map(drop).map_err(|why| format!("exclude: `{it}`: {why}"))
        })
    }

    /// Checks the values that Operators would be written with.
    fn check_values(&self) -> Result<(), String> {
        for (name, value) in [
            ("channel", &self.channel),
            ("repository", &self.repository),
            ("preferRepository", &self.prefer_repository),
        ] {
            if value.as_deref() == Some("") {
                return Err(format!("{name} is empty: leave it out for any, or name one"));
            }
        }
        if let Some(namespace) = &self.namespace
            && let Some(wrong) = names::label(namespace).first()
        {
            return Err(format!("namespace: no namespace can be named `{namespace}`: {wrong}"));
        }
        if let Some(protection) = &self.collision_protection {
            let value = Value::from(protection.as_str());
            serde_json::from_value::<CollisionProtection>(value)
                .map_err(|error| format!("collisionProtection: {error}"))?;
        }
        Ok(())
    }
}

fn flag(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("the parameter `{name}` is `{value}`: use true or false")),
    }
}

/// Returns the names of the packages that an answer depends on beside those of Operators: the requested ones,
/// chosen providers, and those that are excluded or of which a bundle is.
pub fn needed_packages(request: &InstallRequest) -> Vec<String> {
    let chosen = request.providers.iter().filter_map(|it| Some(it.split_once('=')?.1));
    let provided = request.providers.iter().filter_map(|it| Some(it.split_once('=')?.0));
    let provided = provided.filter(|it| !it.contains('/'));
    let excluded = request.exclude.iter().filter_map(|it| it.split('/').next());
    let named = request.names().chain(chosen).chain(provided).chain(excluded);
    named.map(str::to_owned).collect()
}

/// How a resolution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ResolutionOutcome {
    /// There is a plan, which may be empty.
    Solved,
    /// The packages conflict with each other or with installed Operators.
    Unsatisfiable,
    /// The resolver reached its limit of work.
    LimitExceeded,
    /// No catalog has a requested package.
    PackageNotFound,
    /// The query cannot be read, or is about what exists already.
    Invalid,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionAnswer {
    /// How the resolution ended.
    pub outcome: ResolutionOutcome,
    /// The exit code of `operator resolve --dry-run`.
    pub exit: u8,
    /// What `operator resolve --dry-run` prints to standard output.
    pub text: String,
    /// The sentence that says what is refused; `None` if there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The plan, as `operator resolve -o plan-json` prints it; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<ChangePlan>,
    /// The Operators as they are created or changed, the requested ones first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<Value>,
}

/// Answers a query beside the Operators of `inputs`. `catalogs` have the packages that can be reached from
/// [`needed_packages`] and from the Operators.
pub fn answer(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    query: &ResolutionQuery,
) -> ResolutionAnswer {
    match query.request() {
        Ok(request) => {
            let packages = catalogs.iter().flat_map(|it| &it.packages);
            let offered = packages.map(|it| it.name.clone()).collect();
            answer_request(inputs, catalogs, &offered, &request, &|_| None)
        }
        Err(message) => ResolutionAnswer::refused(ResolutionOutcome::Invalid, message),
    }
}

/// Answers a request as [`answer`] does. `offered` are the names of all packages of the catalogs, and `unneeded`
/// returns what is said of an API that no package of `catalogs` provides or requires; `None` if only these are known.
pub fn answer_request(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    offered: &BTreeSet<String>,
    request: &InstallRequest,
    unneeded: &dyn Fn(&str) -> Option<String>,
) -> ResolutionAnswer {
    let is_unknown = |name: &&str| catalogs.iter().all(|it| it.package(name).is_none());
    let unknown = |name: &str| {
        unknown_package(name, offered.iter().map(String::as_str)) + &not_served(inputs.unavailable)
    };
    if let Some(name) = request.names().find(is_unknown) {
        return ResolutionAnswer::refused(ResolutionOutcome::PackageNotFound, unknown(name));
    }
    if let Some(message) = unknown_catalog(request, catalogs) {
        return ResolutionAnswer::refused(ResolutionOutcome::Invalid, message);
    }
    match plan_install(inputs, catalogs, request) {
        Ok(plan) => ResolutionAnswer {
            outcome: ResolutionOutcome::Solved,
            exit: 0,
            text: plan.text(),
            error: None,
            plan: Some(ChangePlan::of_install(&plan, request, inputs, catalogs)),
            operators: plan.operators.iter().map(|it| it.manifest(request).object()).collect(),
        },
        Err(error) => {
            let sentence = error.unknown_api().and_then(unneeded);
            let error = error.explained(|name| Some(unknown(name))).explained_api(sentence);
            ResolutionAnswer::of(&error)
        }
    }
}

impl ResolutionAnswer {
    /// Returns the answer that a failure of planning is.
    fn of(error: &InstallError) -> Self {
        let message = refusal(error);
        match error {
            InstallError::Unsatisfiable(conflict) => Self {
                text: conflict.text(),
                ..Self::refused(ResolutionOutcome::Unsatisfiable, message)
            },
            InstallError::LimitExceeded => Self::refused(ResolutionOutcome::LimitExceeded, message),
            InstallError::Blocked { .. } => {
                Self::refused(ResolutionOutcome::Unsatisfiable, message)
            }
            InstallError::Invalid(_) => Self::refused(ResolutionOutcome::Invalid, message),
        }
    }

    fn refused(outcome: ResolutionOutcome, message: String) -> Self {
        let exit = if outcome == ResolutionOutcome::Unsatisfiable { 3 } else { 1 };
        let (text, operators) = (String::new(), Vec::new());
        Self { outcome, exit, text, error: Some(message), plan: None, operators }
    }

    /// Returns the answer as a terminal shows it: the text, and the line that says what is refused.
    pub fn transcript(&self) -> String {
        match &self.error {
            None => self.text.clone(),
            Some(error) if self.outcome == ResolutionOutcome::Unsatisfiable => {
                format!("{}Error: {error}\n", self.text)
            }
            Some(error) => format!("{}error: {error}\n", self.text),
        }
    }
}

#[cfg(test)]
mod tests;
