//! The commands that do by hand what Actions do.

use plimsoll_api::olm::action::{ActionSpec, ActionStatus, EffectiveAttribute};
use semver::Version;
use serde_json::Value;

use super::attributes::{EffectiveAction, NamedClass, given, text};
use super::check::effective;
use super::files::built_in_classes;
use super::planning::{
    AUTOREMOVE, CAPABILITY_ENABLE, DELETE, INSTALL, RELEASE_UPDATE, RESOLUTION, UPDATE,
};

/// The characters beside letters and digits that shells read as they are.
const PLAIN: &str = "-_./:=@,+%";

/// Returns the command line that does by hand what an Action does; empty for a class that this program does not
/// have, and for attributes with characters that are not printed.
pub fn command(action: &EffectiveAction) -> String {
    line(&action.class, &action.listed())
}

/// Returns the command line that does by hand what an Action of a class does: for a class that this program does
/// not have, what the class says.
pub fn command_in(class: &NamedClass, action: &EffectiveAction) -> String {
    let command = command(action);
    if command.is_empty() { class.spec.by_hand.clone() } else { command }
}

/// Returns the command line that does by hand what an Action does, by its effective attributes, else by its spec;
/// empty for a class that this program does not have.
pub fn command_of(spec: &ActionSpec, status: &ActionStatus) -> String {
    let classes = built_in_classes();
    let Some(class) = NamedClass::find(&classes, &spec.action_class) else { return String::new() };
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
    let of = |name: &str| {
        let found = attributes.iter().find(|it| it.name == name);
        found.map_or("", |it| it.value.as_str())
    };
    let is_set = |name: &str| of(name) == "true";
    let mut line = match class {
        INSTALL | RESOLUTION => {
            let verb = if class == INSTALL { "install" } else { "resolve" };
            let mut line = CommandLine::new(&["kubectl", "operator", verb]);
            line.versions(of("version"));
            line.option("--channel", of("channel"));
            line.option("--repository", of("repository"));
            line.flag("--no-dependencies", !is_set("installDependencies"));
            line.arguments([of("package")]);
            line
        }
        UPDATE => {
            let mut line = CommandLine::new(&["kubectl", "operator", "update"]);
            line.versions(of("version"));
            // A package that is named moves although it is pinned.
            line.flag("--latest", is_set("parameters.latest") && of("package").is_empty());
            line.arguments([of("package")]);
            line
        }
        DELETE => {
            let mut line = CommandLine::new(&["kubectl", "operator", "delete"]);
            line.flag("--cascade", is_set("parameters.cascade"));
            line.flag("--safe", is_set("ensureConstraintSatisfiability"));
            line.arguments([of("package")]);
            line
        }
        AUTOREMOVE => CommandLine::new(&["kubectl", "operator", "autoremove"]),
        RELEASE_UPDATE => return release_update(of("version"), is_set("dryRun")),
        CAPABILITY_ENABLE => {
            let names = serde_json::from_str::<Value>(of("parameters.capabilities"));
            let names = names.unwrap_or_default();
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            let mut line = CommandLine::new(&["plimsoll", "capability", "enable"]);
            line.arguments(names);
            line
        }
        _ => return String::new(),
    };
    line.flag("--dry-run", is_set("dryRun"));
    line.text()
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
