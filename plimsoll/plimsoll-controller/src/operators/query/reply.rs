//! Queries as they are read from requests, and the replies to them.

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;
use plimsoll_content::catalog::{IndexError, PackageBlock, WantedApi};
use plimsoll_content::expressions::Cel;
use plimsoll_content::hash::sha256;
use plimsoll_operators::query::{
    ResolutionOutcome, ResolutionQuery, answer_request, check_parameter, needed_packages,
    not_served, set_parameter, unknown_package,
};
use plimsoll_operators::snapshot::{FORMAT, LoadoutSnapshot, SnapshotCatalog};
use plimsoll_resolve::CatalogPart;
use serde_json::{Value, json};

use super::QueryState;
use super::failure::Failure;
use super::packages::{PackageFilter, Summaries, package, providers};

/// The methods of what is only read.
const READING: &str = "GET, HEAD";

/// The form of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// What a terminal shows.
    Text,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Query {
    /// What a client needs to know to resolve by itself.
    Config,
    Packages(PackageFilter),
    /// A package by its name.
    Package(String),
    /// The packages that provide an API.
    Providers(WantedApi),
    Resolve(ResolutionQuery, Form),
    /// Everything that a resolution of some packages depends on.
    Snapshot(Vec<String>),
}

/// A reply to a query, with the digest of what it depends on.
pub(super) struct Reply {
    pub(super) tag: String,
    /// The form and the content; `None` if the client has them.
    pub(super) content: Option<(Form, String)>,
}

impl Query {
    /// Reads a query from a request; `wants_text` is whether the client prefers text to JSON.
    ///
    /// # Errors
    ///
    /// When nothing is served at the path or by the method, or a parameter or the body cannot be read.
    pub(super) fn read(
        method: &Method,
        path: &str,
        parameters: &str,
        body: &[u8],
        wants_text: bool,
    ) -> Result<Self, Failure> {
        let decoded = decoded(parameters)?;
        let pairs = || decoded.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let form = if wants_text { Form::Text } else { Form::Json };
        match path {
            "/v1/resolve" if *method == Method::POST => {
                if !decoded.is_empty() {
                    return Err(Failure::bad_request(
                        "the query is in the body: no parameter is read",
                    ));
                }
                let text = std::str::from_utf8(body)
                    .map_err(|_| Failure::bad_request("the query is not UTF-8"))?;
                let query = ResolutionQuery::read(text).map_err(Failure::bad_request)?;
                Ok(Self::Resolve(query, form))
            }
            "/v1/resolve" if !is_read => Err(Failure::method_not_allowed("GET, HEAD, POST")),
            "/v1/config" | "/v1/packages" | "/v1/providers" | "/v1/snapshot" if !is_read => {
                Err(Failure::method_not_allowed(READING))
            }
            "/v1/config" => no_parameters(pairs()).map(|()| Self::Config),
            "/v1/packages" => PackageFilter::from_parameters(pairs())
                .map(Self::Packages)
                .map_err(Failure::bad_request),
            "/v1/providers" => wanted_api(pairs()).map(Self::Providers),
            "/v1/resolve" => ResolutionQuery::from_parameters(pairs())
                .map(|query| Self::Resolve(query, form))
                .map_err(Failure::bad_request),
            "/v1/snapshot" => snapshot_packages(pairs()).map(Self::Snapshot),
            _ => {
                let name = path.strip_prefix("/v1/packages/").filter(|it| !it.is_empty());
                let name = name.ok_or_else(Failure::no_such_path)?;
                if !is_read {
                    return Err(Failure::method_not_allowed(READING));
                }
                no_parameters(pairs())?;
                unescaped(name).map(Self::Package)
            }
        }
    }

    /// Returns the reply. Blocks the thread.
    ///
    /// # Errors
    ///
    /// When the query cannot be answered.
    pub(super) fn reply(
        &self,
        state: &QueryState,
        summaries: &Summaries,
        known: &[String],
    ) -> Result<Reply, Failure> {
        let digest = state.digest();
        // Another version of this program may word an answer otherwise.
        let version = env!("CARGO_PKG_VERSION");
        let query = format!("{self:?}");
        let tag = sha256([version.as_bytes(), digest.as_bytes(), query.as_bytes()]);
        if known.contains(&tag) {
            return Ok(Reply { tag, content: None });
        }
        let json = |value: &Value| (Form::Json, format!("{value}\n"));
        let damaged = |error: IndexError| Failure::internal(error.to_string());
        let content = match self {
            Self::Config => json(&config(state, &digest)),
            Self::Packages(filter) => json(&summaries.list(state, filter).map_err(damaged)?),
            Self::Providers(api) => json(&json!(providers(state, api).map_err(damaged)?)),
            Self::Package(name) => {
                let missing = || {
                    let offered = state.content.package_names();
                    let unknown = unknown_package(name, offered.iter().map(String::as_str));
                    let unavailable = &state.content.inventory.unavailable;
                    Failure::not_found(unknown + &not_served(unavailable))
                };
                json(&package(state, name).map_err(damaged)?.ok_or_else(missing)?)
            }
            Self::Resolve(query, form) => (*form, resolution(state, query, *form)?),
            Self::Snapshot(packages) => (Form::Json, snapshot(state, packages)?.text()),
        };
        // It stands for every answer that there is; a failure is none.
        let is_known = known.iter().any(|it| it == "*");
        Ok(Reply { tag, content: (!is_known).then_some(content) })
    }
}

/// Returns the names and values of the parameters of a URL.
fn decoded(parameters: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::new();
    for pair in parameters.split('&').filter(|it| !it.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((unescaped(&name.replace('+', " "))?, unescaped(&value.replace('+', " "))?));
    }
    Ok(pairs)
}

/// Returns a text of a URL without escapes.
fn unescaped(text: &str) -> Result<String, Failure> {
    let is_escape = |it: &str| {
        let digits = it.as_bytes().get(..2);
        digits.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        let message =
            format!("`{text}` has a `%` without two hexadecimal digits: write `%25` for it");
        return Err(Failure::bad_request(message));
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Failure::bad_request(format!("`{text}` is not UTF-8"))),
    }
}

/// Refuses parameters at a path that has none.
fn no_parameters<'p>(
    mut parameters: impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<(), Failure> {
    parameters
        .try_for_each(|(name, value)| check_parameter(name, value, &[]))
        .map_err(Failure::bad_request)
}

fn wanted_api<'p>(
    parameters: impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<WantedApi, Failure> {
    let mut wanted = None;
    for (name, value) in parameters {
        check_parameter(name, value, &["api"]).map_err(Failure::bad_request)?;
        let api = value.parse::<WantedApi>().map_err(|why| {
            Failure::bad_request(format!("the parameter `api` is `{value}`: {why}"))
        })?;
        set_parameter(name, &mut wanted, api).map_err(Failure::bad_request)?;
    }
    let missing =
        "no API is named: add the parameter `api`, as GROUP/VERSION/KIND, KIND.GROUP or KIND";
    wanted.ok_or_else(|| Failure::bad_request(missing))
}

fn snapshot_packages<'p>(
    parameters: impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<Vec<String>, Failure> {
    let names = parameters.map(|(name, value)| {
        let checked = check_parameter(name, value, &["package"]);
        checked.map(|()| value.to_owned()).map_err(Failure::bad_request)
    });
    names.collect()
}

fn config(state: &QueryState, digest: &str) -> Value {
    let catalogs = state
        .catalogs()
        .into_iter()
        .map(|it| json!({ "name": it.name, "weight": it.weight, "digest": it.digest }));
    let inventory = &state.content.inventory;
    json!({
        "format": FORMAT,
        "resolver": plimsoll_resolve::FORMAT,
        "state": digest,
        "catalogs": catalogs.collect::<Vec<_>>(),
        "unavailable": inventory.unavailable,
        "facts": inventory.facts,
    })
}

/// Returns the parts of the catalogs that can be reached from some packages and from the Operators.
///
/// # Errors
///
/// When an index is damaged: what it lacks is not known then.
fn parts(
    state: &QueryState,
    packages: impl IntoIterator<Item = String>,
) -> Result<Vec<CatalogPart>, Failure> {
    let installed = state.content.inventory.operators.keys().cloned();
    match state.content.read_parts(installed.chain(packages).collect()) {
        (parts, None) => Ok(parts),
        (_, Some(damage)) => Err(Failure::internal(damage)),
    }
}

fn resolution(state: &QueryState, query: &ResolutionQuery, form: Form) -> Result<String, Failure> {
    let request = query.request().map_err(Failure::bad_request)?;
    let parts = parts(state, needed_packages(&request))?;
    let (inventory, offered) = (&state.content.inventory, state.content.package_names());
    let unneeded = |api: &str| {
        let api: WantedApi = api.parse().ok()?;
        Some(providers(state, &api).ok()?.unneeded(&api))
    };
    let answer = answer_request(inventory.inputs(&Cel), &parts, &offered, &request, &unneeded);
    match (answer.outcome, &answer.error) {
        (ResolutionOutcome::PackageNotFound, Some(error)) => Err(Failure::not_found(error)),
        (ResolutionOutcome::Invalid, Some(error)) => Err(Failure::bad_request(error)),
        _ => Ok(match form {
            Form::Text => answer.transcript(),
            Form::Json => format!("{}\n", json!(answer)),
        }),
    }
}

/// Returns everything that a resolution of some packages depends on, as far as catalogs have them.
fn snapshot(state: &QueryState, packages: &[String]) -> Result<LoadoutSnapshot, Failure> {
    let parts = parts(state, packages.iter().cloned())?;
    let inventory = &state.content.inventory;
    let catalogs = parts.into_iter().map(|part| SnapshotCatalog {
        digest: state.content.digests.get(&part.name.name).cloned().unwrap_or_default(),
        images: images(state, &part),
        // A query does not read the content of bundles.
        digests: BTreeMap::new(),
        part,
    });
    let (facts, operators) = (inventory.facts.clone(), inventory.operators.clone());
    let unavailable = inventory.unavailable.clone();
    Ok(LoadoutSnapshot::new(facts, operators, catalogs.collect(), unavailable))
}

/// Returns the images of the bundles of a part of a catalog, by the names of the bundles.
fn images(state: &QueryState, part: &CatalogPart) -> BTreeMap<String, String> {
    let mut images = BTreeMap::new();
    let Some(index) = state.content.indexes.get(&part.name.name) else { return images };
    for package in &part.packages {
        let Ok(Some(block)) = index.package(&package.name) else { continue };
        let Ok(package) = PackageBlock::read(&block) else { continue };
        let named = package.bundles.iter().filter(|it| !it.image.is_empty());
        images.extend(named.map(|it| (it.name.to_string(), it.image.to_string())));
    }
    images
}
