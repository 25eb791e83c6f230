//! Names of bundles, requirements and requests in texts.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use crate::bundle::{Constraint, Requirement};
use crate::model::{CatalogEntry, Model, SolvableId};
use crate::problem::{CatalogName, PackageRequest};

/// A requirement as the object of a sentence.
pub(crate) fn described(requirement: &Requirement) -> String {
    let text = constraint(&requirement.constraint);
    match &requirement.message {
        Some(message) => format!("{text} (\"{}\")", shortened(message)),
        None => text,
    }
}

fn constraint(of: &Constraint) -> String {
    let all = |members: &[Requirement], between: &str| {
        let texts: Vec<String> = members.iter().map(|member| operand(&member.constraint)).collect();
        texts.join(between)
    };
    match of {
        Constraint::Api(api) => format!("a provider of {api}"),
        Constraint::Package { name, range } => format!("{name} in `{}`", shortened(range)),
        Constraint::Label(label) => format!("a bundle with label `{}`", shortened(label)),
        Constraint::All(members) if members.is_empty() => "any bundle".to_owned(),
        Constraint::All(members) => format!("one bundle that is {}", all(members, " and also ")),
        Constraint::Any(members) if members.is_empty() => "an unsatisfiable constraint".to_owned(),
        Constraint::Any(members) => all(members, " or "),
        Constraint::Not(members) if members.is_empty() => "any bundle".to_owned(),
        Constraint::Not(members) => format!("a bundle that is not {}", all(members, " nor ")),
        Constraint::Cel { rule } => format!("a bundle for which `{}`", shortened(rule)),
    }
}

/// A constraint inside another: one that has several parts is in brackets.
fn operand(of: &Constraint) -> String {
    let text = constraint(of);
    match of {
        Constraint::All(members) | Constraint::Any(members) | Constraint::Not(members)
            if !members.is_empty() =>
        {
            format!("({text})")
        }
        Constraint::All(_)
        | Constraint::Any(_)
        | Constraint::Not(_)
        | Constraint::Api(_)
        | Constraint::Package { .. }
        | Constraint::Label(_)
        | Constraint::Cel { .. } => text,
    }
}

/// Longest quoted text that a sentence repeats, in characters.
const QUOTED_MAX: usize = 200;

/// At most [`QUOTED_MAX`] characters of a text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A request as the subject of a sentence.
pub(crate) fn named(request: &PackageRequest) -> String {
    let PackageRequest { namespace, package, channel, version, bundle, catalog, .. } = request;
    let mut text = format!("`{package}`");
    if let Some(version) = version {
        text.push_str(&format!(" with version `{version}`"));
    }
    if let Some(bundle) = bundle {
        text.push_str(&format!(", starting at {bundle},"));
    }
    if let Some(channel) = channel {
        text.push_str(&format!(" from channel `{channel}`"));
    }
    if let Some(catalog) = catalog {
        text.push_str(&format!(" of catalog {catalog}"));
    }
    if !namespace.is_empty() {
        text.push_str(&format!(" for namespace `{namespace}`"));
    }
    text
}

/// Solvables as people call them: each package with its versions, and with its catalogs when
/// several carry it.
pub(crate) fn bundles(model: &Model<'_>, solvables: &[SolvableId]) -> String {
    let mut packages: BTreeMap<(&str, Option<&CatalogName>), BTreeSet<&Version>> = BTreeMap::new();
    for id in solvables {
        let solvable = &model.solvables[*id];
        let name = solvable.package().unwrap_or(&solvable.bundle.name);
        let several = model.index.named(name).len() > 1;
        let catalog = solvable.catalog_entry().filter(|_| several);
        let catalog = catalog.map(|entry| &entry.catalog.name);
        packages.entry((name, catalog)).or_default().insert(&solvable.bundle.version);
    }
    let texts: Vec<String> = packages
        .iter()
        .map(|((name, catalog), versions)| match catalog {
            Some(catalog) => format!("{name} {} of catalog {catalog}", spanned(versions)),
            None => format!("{name} {}", spanned(versions)),
        })
        .collect();
    joined(&texts, "and")
}

/// Versions, the lowest first: all of few, the ends of many.
pub(super) fn spanned(versions: &BTreeSet<&Version>) -> String {
    match (versions.first(), versions.last(), versions.len()) {
        (Some(first), _, 1) => first.to_string(),
        (Some(first), Some(last), 2) => format!("{first} and {last}"),
        (Some(first), Some(last), count) => format!("{first} to {last} ({count} versions)"),
        _ => String::new(),
    }
}

/// Returns how many versions solvables stand for, for the form of the verb.
pub(crate) fn several(model: &Model<'_>, solvables: &[SolvableId]) -> bool {
    let names: BTreeSet<(Option<&str>, &Version)> = solvables
        .iter()
        .map(|id| (model.solvables[*id].package(), &model.solvables[*id].bundle.version))
        .collect();
    names.len() > 1
}

/// Most things that a list in a sentence names.
const LISTED_MAX: usize = 6;

/// Things as a list.
pub(crate) fn joined(texts: &[String], word: &str) -> String {
    match texts {
        [] => String::new(),
        [only] => only.clone(),
        _ if texts.len() > LISTED_MAX => {
            let more = texts.len() - LISTED_MAX;
            format!("{} {word} {more} more", texts[..LISTED_MAX].join(", "))
        }
        [front @ .., last] => format!("{} {word} {last}", front.join(", ")),
    }
}

/// The place of an offered: its channel, and its catalog when there are several.
pub(crate) fn channel_of(model: &Model<'_>, offered: &CatalogEntry<'_>) -> String {
    let channel = &offered.channel.name;
    match model.problem().catalogs.len() {
        0 | 1 => format!("channel `{channel}`"),
        _ => format!("channel `{channel}` of {}", offered.catalog.name),
    }
}
