//! Checks of the values of attributes of the classes that this program serves: names, versions, and what goes
//! together.

use std::collections::BTreeSet;

use k8s_cel::names;
use plimsoll_resolve::range::masterminds::Range;
use semver::Version;
use serde_json::Value;

use super::Problems;
use crate::RequestedPackage;
use crate::actions::attributes::{ATTRIBUTES, FLAGS, NamedClass, SetAttributes};
use crate::actions::planning::{DELETE, INSTALL, RELEASE_UPDATE, RESOLUTION, UPDATE};
use crate::query::values::{exclusion, provider};

/// Adds what is wrong with the attributes of an Action of a class.
pub(super) fn check(class: &NamedClass, attributes: &SetAttributes, found: &mut Problems) {
    let values = Values { attributes };
    found.extend(values.types());
    match class.name.as_str() {
        INSTALL | RESOLUTION => {
            values.names(false, found);
            found.extend(values.range());
            values.sources(found);
        }
        UPDATE => {
            values.names(false, found);
            found.extend(values.range());
            found.extend(values.update());
        }
        DELETE => values.names(true, found),
        RELEASE_UPDATE => found.extend(values.release()),
        _ => {}
    }
}

struct Values<'a> {
    attributes: &'a SetAttributes,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name).map(|(value, _)| value)
    }

    /// Returns what is of a wrong type: requests have none of these, policies and classes may.
    fn types(&self) -> Vec<String> {
        let set = self.attributes.iter().filter(|(name, _)| ATTRIBUTES.contains(&name.as_str()));
        let problem = |(name, (value, set_by)): (&String, &(Value, String))| {
            let (is_right, wanted) = match FLAGS.contains(&name.as_str()) {
                true => (value.is_boolean(), "it is true or false"),
                false => (value.is_string(), "it is a text"),
            };
            (!is_right).then(|| format!("spec.{name} is {value}, as {set_by} sets it: {wanted}"))
        };
        set.filter_map(problem).collect()
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the texts of a parameter that is a list, each with its path.
    fn texts(&self, name: &str) -> Vec<(String, &str)> {
        let texts = self.get(name).and_then(Value::as_array).into_iter().flatten();
        let texts = texts.enumerate().filter_map(|(at, it)| Some((at, it.as_str()?)));
        texts.map(|(at, it)| (format!("spec.{name}[{at}]"), it)).collect()
    }

    /// Adds what is wrong with the names of Operators. Without `is_bare`, those of parameters may have ranges.
    fn names(&self, is_bare: bool, found: &mut Problems) {
        let mut seen = BTreeSet::new();
        let package = self.text("package");
        if let Some((name, range)) = package.split_once('@') {
            found.add(|| match is_bare {
                true => format!("spec.package is {package:?}: write \"{name}\""),
                false => format!(
                    "spec.package is {package:?}: write \"package: {name}\" and \
                     \"version: {range}\""
                ),
            });
        } else if !package.is_empty() {
            found.extend(unusual("spec.package", package));
            seen.insert(package.to_owned());
        }
        let lists = [("parameters.packages", is_bare, false), ("parameters.ranges", false, true)];
        for (list, is_bare, needs_range) in lists {
            for (path, text) in self.texts(list) {
                let read: Result<RequestedPackage, String> = text.parse();
                let package = match read {
                    Err(why) => {
                        found.add(|| format!("{path}: {why}"));
                        continue;
                    }
                    Ok(it) => it,
                };
                if is_bare && package.range.is_some() {
                    found.add(|| format!("{path} is {text:?}: write \"{}\"", package.name));
                } else if needs_range && package.range.is_none() {
                    found.add(|| {
                        format!(
                            "{path} is {text:?}, without versions: write for example \
                             \"{text}@^1.2\""
                        )
                    });
                }
                found.extend(unusual(&path, &package.name));
                if !seen.insert(package.name.clone()) {
                    let name = &package.name;
                    found.add(|| format!("{path}: {name} is named twice: name it once"));
                }
            }
        }
    }

    /// Returns what is wrong with the range of versions.
    fn range(&self) -> Option<String> {
        let version = self.text("version");
        let read = Range::parse(version).err().filter(|_| !version.is_empty());
        read.map(|error| {
            format!("spec.version: {error}; write a version such as 1.2.3, or a range such as ^1.2")
        })
    }

    /// Returns what is wrong with the version of a release.
    fn release(&self) -> Option<String> {
        let version = self.text("version");
        let is_read = version.is_empty() || Version::parse(version).is_ok();
        (!is_read).then(|| {
            format!(
                "spec.version is {version:?}: write one whole version, such as 1.2.3, or leave it \
                 out for the newest one"
            )
        })
    }

    /// Adds what is wrong with where packages are from and installed to.
    fn sources(&self, found: &mut Problems) {
        for (path, text) in self.texts("parameters.providers") {
            found.extend(provider(text).err().map(|why| format!("{path}: {why}")));
        }
        for (path, text) in self.texts("parameters.exclude") {
            found.extend(exclusion(text).err().map(|why| format!("{path} is {text:?}: {why}")));
        }
        let namespace = self.text("parameters.namespace");
        if !namespace.is_empty()
            && let Some(wrong) = names::label(namespace).first()
        {
            found.add(|| {
                format!(
                    "spec.parameters.namespace: no namespace can be named `{namespace}`: {wrong}"
                )
            });
        }
    }

    /// Returns what does not go together in an update.
    fn update(&self) -> Vec<String> {
        let mut found = Vec::new();
        let is_true = |name: &str| self.get(name) == Some(&Value::Bool(true));
        let lists = ["parameters.packages", "parameters.ranges"];
        let is_named =
            !self.text("package").is_empty() || lists.iter().any(|it| !self.texts(it).is_empty());
        if self.text("package").is_empty() && !self.text("version").is_empty() {
            found.push(
                "spec.version is for one Operator: write its name to spec.package, or use \
                 spec.parameters.latest for all of them"
                    .to_owned(),
            );
        }
        if is_true("parameters.latest") && is_named {
            found.push(
                "spec.parameters.latest is for all Operators: leave it out, or name none; one that \
                 is named without a version gets the newest one"
                    .to_owned(),
            );
        }
        found
    }
}

/// Returns the reason that no Operator can have a name.
fn unusual(path: &str, name: &str) -> Option<String> {
    let wrong = names::subdomain(name);
    let wrong = wrong.first()?;
    Some(format!("{path}: no Operator can be named `{name}`: {wrong}"))
}
