//! The commands that do by hand what Actions do.

use std::collections::BTreeMap;

use plimsoll_api::olm::action::{ActionSpec, ActionStatus, EffectiveAttribute};
use semver::Version;
use serde_json::Value;

use super::attributes::{EffectiveAction, NamedClass, given, is_complete, text};
use super::check::{effective, length_failure};
use super::files::built_in_classes;
use super::planning::{
    AUTOREMOVE, CAPABILITY_ENABLE, DELETE, INSTALL, RELEASE_UPDATE, RESOLUTION, UPDATE,
};
use crate::RequestedPackage;

/// The characters beside letters and digits that shells read as they are.
const PLAIN: &str = "-_./:=@,+%";

/// Returns the command line that does by hand what an Action does; empty for a class that this program does not
/// have, and for attributes with characters that are not printed.
pub fn command(action: &EffectiveAction) -> String {
    line(&action.class, &action.texts_of_all())
}

/// Returns the command line that does by hand what an Action of a class does: for a class that this program does
/// not have, what the class says.
pub fn command_in(class: &NamedClass, action: &EffectiveAction) -> String {
    let command = command(action);
    if command.is_empty() { class.spec.by_hand.clone() } else { command }
}

/// Returns the command line that does by hand what an Action does, by its effective attributes, else by its spec;
/// empty for a class that this program does not have, and for attributes that are too long for a status.
pub fn command_of(spec: &ActionSpec, status: &ActionStatus) -> String {
    let classes = built_in_classes();
    let Some(class) = NamedClass::find(&classes, &spec.action_class) else { return String::new() };
    if length_failure(spec).is_some() || !is_complete(&status.effective_spec) {
        return String::new();
    }
    if !status.effective_spec.is_empty() {
        return line(&class.name, &status.effective_spec);
    }
    match effective(spec, class, None) {
        Ok(action) => command(&action),
        Err(_) => {
            let given = given(spec).into_iter().map(|(name, value)| EffectiveAttribute {
                value: text(&value),
                name,
                set_by: String::new(),
            });
            line(&class.name, &given.collect::<Vec<_>>())
        }
    }
}

/// Returns the command line for the attributes of a class.
fn line(class: &str, attributes: &[EffectiveAttribute]) -> String {
    let attributes = Attributes(attributes);
    let is_dry_run = attributes.is_set("dryRun");
    let mut line = match class {
        INSTALL | RESOLUTION => install(class, attributes),
        UPDATE => return update(attributes),
        DELETE => {
            let is_forced = attributes.is_set("parameters.force");
            let is_safe = attributes.is_set("ensureConstraintSatisfiability") && !is_forced;
            let mut line = CommandLine::new(&["kubectl", "operator", "delete"]);
            line.packages(&attributes.packages());
            line.flag("--cascade", attributes.is_set("parameters.cascade"));
            line.flag("--keep-crds", attributes.is_set("parameters.keepCRDs"));
            // Without either, the command asks about each Operator that others depend on.
            line.flag("--safe", is_safe);
            line.flag("--force", is_forced);
            line
        }
        AUTOREMOVE => {
            let mut line = CommandLine::new(&["kubectl", "operator", "autoremove"]);
            line.flag("--keep-crds", attributes.is_set("parameters.keepCRDs"));
            line
        }
        RELEASE_UPDATE => return release_update(attributes.text("version"), is_dry_run),
        CAPABILITY_ENABLE => {
            let names = attributes.texts("parameters.capabilities");
            let mut line = CommandLine::new(&["plimsoll", "capability", "enable"]);
            line.arguments(names.iter().map(String::as_str));
            line
        }
        _ => return String::new(),
    };
    line.flag("--dry-run", is_dry_run || class == RESOLUTION);
    line.text()
}

/// Returns the command that installs packages, or shows what that would come to.
fn install(class: &str, attributes: Attributes<'_>) -> CommandLine {
    let [namespace, protection] =
        ["parameters.namespace", "parameters.collisionProtection"].map(|it| attributes.text(it));
    // Only `install` has options for these. It plans the same.
    let is_install = class == INSTALL || !namespace.is_empty() || !protection.is_empty();
    let verb = if is_install { "install" } else { "resolve" };
    let mut line = CommandLine::new(&["kubectl", "operator", verb]);
    line.packages(&attributes.packages());
    line.option("--channel", attributes.text("channel"));
    line.option("--repository", attributes.text("repository"));
    line.option("--namespace", namespace);
    line.option("--collision-protection", protection);
    for (name, parameter) in
        [("--use", "parameters.providers"), ("--exclude", "parameters.exclude")]
    {
        attributes.texts(parameter).iter().for_each(|it| line.option(name, it));
    }
    line.option("--prefer-repository", attributes.text("parameters.preferRepository"));
    line.flag("--no-dependencies", !attributes.is_set("installDependencies"));
    let is_forced = attributes.is_set("parameters.force")
        || attributes.text("ensureConstraintSatisfiability") == "false";
    line.flag("--force", is_forced && class == INSTALL);
    if class == RESOLUTION {
        // The answer of the service has the same plan.
        let is_plan = matches!(attributes.text("parameters.output"), "json" | "plan-json");
        line.option("--output", if is_plan { "plan-json" } else { "" });
        // Otherwise, what files declare counts as installed, and not what the cluster has.
        line.flag("--apply", !is_install);
    }
    line
}

/// Returns the command that updates Operators. If those that are named follow ranges from then on, that is one for each
/// range, since the option for it is for all that a command names.
fn update(attributes: Attributes<'_>) -> String {
    let (named, ranges) = (attributes.packages(), attributes.texts("parameters.ranges"));
    let line = || CommandLine::new(&["kubectl", "operator", "update"]);
    let mut groups: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    if attributes.is_set("parameters.follow") {
        for RequestedPackage { name, range } in named.iter().cloned() {
            groups.entry(range).or_default().push(name);
        }
    }
    let mut lines = Vec::new();
    for (range, names) in &groups {
        let mut line = line();
        line.versions(range.as_deref().unwrap_or_default());
        line.arguments(names.iter().map(String::as_str));
        lines.push(line);
    }
    if lines.is_empty() {
        let mut line = line();
        named.iter().for_each(|it| line.arguments([it.to_string().as_str()]));
        // A package that is named moves although it is pinned.
        let is_latest = attributes.is_set("parameters.latest");
        line.flag("--latest", is_latest && named.is_empty() && ranges.is_empty());
        lines.push(line);
    }
    if let Some(last) = lines.last_mut() {
        ranges.iter().for_each(|it| last.option("--for-range", it));
    }
    lines.iter_mut().for_each(|it| it.flag("--dry-run", attributes.is_set("dryRun")));
    let texts: Vec<String> = lines.into_iter().map(CommandLine::text).collect();
    if texts.iter().any(String::is_empty) { String::new() } else { texts.join(" && ") }
}

fn release_update(version: &str, is_dry_run: bool) -> String {
    let mut line = match (version, is_dry_run) {
        ("", true) => CommandLine::new(&["plimsoll", "update"]),
        (_, true) => CommandLine::new(&["plimsoll", "update", "plan"]),
        (_, false) => CommandLine::new(&["plimsoll", "update", "to"]),
    };
    line.flag("--latest", version.is_empty() && !is_dry_run);
    line.arguments([version]);
    line.text()
}

/// The attributes of an Action, with their values as texts.
#[derive(Clone, Copy)]
struct Attributes<'a>(&'a [EffectiveAttribute]);

impl<'a> Attributes<'a> {
    /// Returns a text; empty if it is not set.
    fn text(self, name: &str) -> &'a str {
        let found = self.0.iter().find(|it| it.name == name);
        found.map_or("", |it| it.value.as_str())
    }

    /// Returns whether an attribute is `true`.
    fn is_set(self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// Returns a list of texts; empty if it is not set.
    fn texts(self, name: &str) -> Vec<String> {
        let values = serde_json::from_str::<Value>(self.text(name)).unwrap_or_default();
        let values = values.as_array().into_iter().flatten().filter_map(Value::as_str);
        values.map(str::to_owned).collect()
    }

    /// Returns the packages that are named, beside those of `parameters.ranges`.
    fn packages(self) -> Vec<RequestedPackage> {
        let range = Some(self.text("version")).filter(|it| !it.is_empty()).map(str::to_owned);
        let name = self.text("package").to_owned();
        let package = Some(RequestedPackage { name, range }).filter(|it| !it.name.is_empty());
        let others = self.texts("parameters.packages");
        package.into_iter().chain(others.iter().map(|it| requested(it))).collect()
    }
}

/// Reads a package with a range. A text that is invalid stays as it is.
fn requested(text: &str) -> RequestedPackage {
    text.parse().unwrap_or_else(|_| RequestedPackage { name: text.to_owned(), range: None })
}

/// A command line: what is run, arguments, then options.
struct CommandLine {
    run: Vec<String>,
    arguments: Vec<String>,
    options: Vec<String>,
}

impl CommandLine {
    fn new(words: &[&str]) -> Self {
        let run = words.iter().map(|it| (*it).to_owned()).collect();
        Self { run, arguments: Vec::new(), options: Vec::new() }
    }

    /// Adds arguments, unless they are empty.
    fn arguments<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) {
        let values = values.into_iter().filter(|it| !it.is_empty());
        self.arguments.extend(values.map(str::to_owned));
    }

    /// Adds an option with a value, unless that is empty.
    fn option(&mut self, name: &str, value: &str) {
        if value.starts_with('-') {
            // It would be read as an option of its own.
            self.options.push(format!("{name}={value}"));
        } else if !value.is_empty() {
            self.options.extend([name.to_owned(), value.to_owned()]);
        }
    }

    fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.options.push(name.to_owned());
        }
    }

    /// Adds packages with their ranges. The option for a range would be for all of them.
    fn packages(&mut self, packages: &[RequestedPackage]) {
        if let [RequestedPackage { name, range }] = packages {
            self.arguments([name.as_str()]);
            return self.versions(range.as_deref().unwrap_or_default());
        }
        packages.iter().for_each(|it| self.arguments([it.to_string().as_str()]));
    }

    /// Adds the option for a version or a range of versions, unless that is empty.
    fn versions(&mut self, range: &str) {
        let name = if Version::parse(range).is_ok() { "--version" } else { "--version-range" };
        self.option(name, range);
    }

    /// Returns the words for a shell; empty if one has characters that are not printed.
    fn text(self) -> String {
        let Self { run, arguments, options } = self;
        // Without `--`, an argument that begins with a dash would be an option.
        let words: Vec<String> = match arguments.iter().any(|it| it.starts_with('-')) {
            true => [run, options, vec!["--".to_owned()], arguments].concat(),
            false => [run, arguments, options].concat(),
        };
        if words.iter().any(|it| it.chars().any(char::is_control)) {
            return String::new();
        }
        let words: Vec<String> = words.iter().map(|it| shell_quoted(it)).collect();
        words.join(" ")
    }
}

/// Quotes a word as far as shells need it.
fn shell_quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || PLAIN.contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
