//! The program as a plug-in of kubectl: the same binary under other names.
//!
//! `kubectl operator` runs `kubectl-operator`, and asks `kubectl_complete-operator` for completions.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, CommandFactory as _, Parser};
use plimsoll_api::duration;
use plimsoll_resolve::printable::on_one_line;

use crate::arguments::catalog::CatalogPath;
use crate::arguments::cluster::ClusterArguments;
use crate::commands::operator::OperatorArguments;
use crate::commands::operator::catalogs::CatalogChoice;
use crate::commands::operator::names::{ANSWER_TIME_MAX, NamedKind, names};
use crate::commands::{Command, block_on};
use crate::exit;

/// Name of the binary that kubectl runs for `kubectl operator`.
const PLUGIN: &str = "kubectl-operator";
/// Name of the binary that kubectl runs to complete `kubectl operator`.
const COMPLETIONS: &str = "kubectl_complete-operator";
/// What kubectl reads after the last completion: names of files are no answer.
///
/// Upstream: github.com/spf13/cobra/completions.go: ShellCompDirectiveNoFileComp
const NO_FILES: &str = ":4";

/// Install, inspect and delete Operators
#[derive(Debug, Parser)]
#[command(name = PLUGIN, bin_name = "kubectl operator", version, max_term_width = 100)]
pub(crate) struct PluginArguments {
    #[command(flatten)]
    arguments: OperatorArguments,
}

impl PluginArguments {
    /// The command that they stand for.
    pub(crate) fn into_command(self) -> Command {
        Command::Operator(Box::new(self.arguments))
    }
}

/// What the program was started as.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// `plimsoll`
    Program,
    /// `kubectl operator`
    Plugin,
    /// To complete these words of `kubectl operator`; the last one is incomplete.
    Completions(Vec<String>),
}

/// What a command line asks for, by the name of the program.
pub(crate) fn invocation(words: impl IntoIterator<Item = OsString>) -> Invocation {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    match Path::new(&program).file_stem().and_then(OsStr::to_str) {
        Some(PLUGIN) => Invocation::Plugin,
        Some(COMPLETIONS) => {
            Invocation::Completions(words.map(|it| it.to_string_lossy().into_owned()).collect())
        }
        Some(_) | None => Invocation::Program,
    }
}

/// Prints what may follow, as kubectl reads it.
pub(crate) fn complete(words: &[String]) -> ExitCode {
    let mut out = io::stdout().lock();
    let mut text = String::new();
    let Completions { mut found, named } = completions(words);
    if let Some(argument) = named {
        found.extend(argument.completions());
    }
    for (value, help) in found {
        text.push_str(&format!("{value}\t{help}\n"));
    }
    // An error could not be shown either.
    let _ = writeln!(out, "{text}{NO_FILES}");
    exit::SUCCESS.into()
}

/// What may take the place of the last word.
struct Completions {
    /// Subcommands, options and values, with their help.
    found: Vec<(String, String)>,
    /// The argument that is a name, whose values the cluster or a catalog has; `None` for another word.
    named: Option<NamedArgument>,
}

/// An argument that is a name.
struct NamedArgument {
    kind: NamedKind,
    /// What is typed of it.
    begun: String,
    /// The names before it, which are not repeated.
    given: Vec<String>,
    cluster: ClusterArguments,
    /// Without one, that of the kubeconfig's context.
    namespace: Option<String>,
    catalogs: CatalogChoice,
}

impl NamedArgument {
    /// The names that begin like it, with what is known of each; none if they cannot be read.
    fn completions(&self) -> Vec<(String, String)> {
        let namespace = self.namespace.as_deref();
        let found = block_on(names(self.kind, &self.cluster, namespace, &self.catalogs));
        let found = found.unwrap_or_default();
        let fits = |name: &String| name.starts_with(&self.begun) && !self.given.contains(name);
        let found = found.into_iter().filter(|(name, _)| fits(name));
        found.map(|(name, help)| (on_one_line(&name), on_one_line(&help))).collect()
    }
}

/// Finds what may take the place of the last word.
fn completions(words: &[String]) -> Completions {
    let mut root = PluginArguments::command();
    root.build();
    let mut command = &root;
    let (begun, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", words),
    };
    let mut value_of: Option<&Arg> = None;
    let mut cluster =
        ClusterArguments { kubeconfig: None, context: None, request_timeout: ANSWER_TIME_MAX };
    let mut catalogs = CatalogChoice::default();
    let mut namespace = None;
    let mut set = |option: &Arg, value: &str| match option.get_long() {
        Some("kubeconfig") => cluster.kubeconfig = Some(value.into()),
        Some("context") => cluster.context = Some(value.to_owned()),
        Some("request-timeout") => {
            cluster.request_timeout = duration::parse(value).unwrap_or(ANSWER_TIME_MAX);
        }
        Some("namespace") => namespace = Some(value.to_owned()),
        Some("catalog") => catalogs.catalog.extend(CatalogPath::without_namespace(value).ok()),
        Some(_) | None => {}
    };
    let mut given = Vec::new();
    for word in before {
        if let Some(option) = value_of.take() {
            set(option, word);
            continue;
        }
        match option(command, word) {
            Some(option) if option.get_action().takes_values() && !word.contains('=') => {
                value_of = Some(option);
            }
            Some(option) => {
                if let Some((_, value)) = word.split_once('=') {
                    set(option, value);
                }
            }
            None => match command.find_subcommand(word) {
                Some(subcommand) => command = subcommand,
                None => given.push(word.clone()),
            },
        }
    }
    let kind = match value_of {
        None if !begun.starts_with('-') => named_kind(command, given.len()),
        Some(_) | None => None,
    };
    let begun_name = begun.to_owned();
    let named = kind.map(|kind| NamedArgument {
        kind,
        begun: begun_name,
        given,
        cluster,
        namespace,
        catalogs,
    });
    Completions { found: candidates(command, value_of, begun), named }
}

/// Returns the subcommands, options or values that begin like the last word, with their help.
fn candidates(
    command: &clap::Command,
    value_of: Option<&Arg>,
    begun: &str,
) -> Vec<(String, String)> {
    let mut found = match value_of {
        Some(option) => values(option),
        None if begun.starts_with('-') => {
            let shown = command.get_arguments().filter(|it| !it.is_hide_set());
            let option = |it: &Arg| {
                let help = it.get_help().map(ToString::to_string).unwrap_or_default();
                Some((format!("--{}", it.get_long()?), help))
            };
            shown.filter_map(option).collect()
        }
        None => {
            let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
            let help = |it: &clap::Command| it.get_about().map(ToString::to_string);
            shown.map(|it| (it.get_name().to_owned(), help(it).unwrap_or_default())).collect()
        }
    };
    found.retain(|(value, _)| value.starts_with(begun));
    found
}

/// What the next argument of a command names, after some others; `None` if it is no name.
fn named_kind(command: &clap::Command, given: usize) -> Option<NamedKind> {
    let is_repeated = |argument: &&Arg| {
        argument.get_num_args().is_some_and(|it| it.max_values() > 1)
            || matches!(argument.get_action(), ArgAction::Append)
    };
    let repeated = command.get_positionals().last().filter(is_repeated);
    let argument = command.get_positionals().nth(given).or(repeated)?;
    match argument.get_id().as_str() {
        "name" | "names" => Some(NamedKind::Operator),
        "package" | "packages" => Some(NamedKind::Package),
        "action" => Some(NamedKind::Action),
        "class" => Some(NamedKind::ActionClass),
        _ => None,
    }
}

/// The option that a word names.
fn option<'c>(command: &'c clap::Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().find(|argument| match name.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => name
            .strip_prefix('-')
            .is_some_and(|short| argument.get_short().is_some_and(|it| short == it.to_string())),
    })
}

fn values(option: &Arg) -> Vec<(String, String)> {
    let possible = option.get_possible_values().into_iter().filter(|it| !it.is_hide_set());
    let help = |it: &clap::builder::PossibleValue| it.get_help().map(ToString::to_string);
    possible.map(|it| (it.get_name().to_owned(), help(&it).unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_api::olm::action::{ActionSpec, ActionStatus};
    use plimsoll_operators::actions::by_hand::command_of;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_actions_name_as_the_command_by_hand_can_be_typed() {
        let check = |class: &str, version: &str, parameters: Value| {
            let spec = json!({
                "actionClass": class, "package": "foo", "version": version,
                "channel": "stable", "repository": "fixture", "parameters": parameters,
            });
            let spec: ActionSpec = serde_json::from_value(spec).expect("it is a spec");
            let command = command_of(&spec, &ActionStatus::default());
            assert!(!command.is_empty(), "{class}");
            for line in command.split(" && ") {
                let words = line.split(' ').skip(1).map(|it| it.trim_matches('\''));
                if let Err(error) = PluginArguments::try_parse_from(words) {
                    panic!("{line}: {error}");
                }
            }
        };
        let chosen = || {
            json!({
                "packages": ["bar@^2"], "providers": ["bar=baz"], "exclude": ["qux"],
                "preferRepository": "same", "output": "json", "force": true,
            })
        };
        let mut placed = chosen();
        placed["namespace"] = "tea".into();
        placed["collisionProtection"] = "IfNoController".into();
        for class in ["operator-install", "resolution"] {
            check(class, "^1", json!({}));
            check(class, "1.2.3", chosen());
            check(class, "^1", placed.clone());
        }
        let ranges = || json!(["bar@^2", "baz@<3"]);
        check("operator-update", "^1", json!({ "packages": ["qux"], "ranges": ranges() }));
        check("operator-update", "^1", json!({ "follow": true, "ranges": ranges() }));
        check("operator-update", "1.2.3", json!({ "follow": true }));
        let all = json!({ "packages": ["bar"], "cascade": true, "keepCRDs": true, "force": true });
        check("operator-delete", "", all);
        check("operator-delete", "", json!({}));
        check("autoremove", "", json!({ "keepCRDs": true }));
    }

    #[test]
    fn the_name_of_the_program_says_what_it_is() {
        let check = |line: &str, expected: Invocation| {
            assert_eq!(invocation(line.split(' ').map(OsString::from)), expected, "{line}");
        };
        check("plimsoll list", Invocation::Program);
        check("/usr/local/bin/kubectl-operator list", Invocation::Plugin);
        check("kubectl-operator.exe list", Invocation::Plugin);
        let words = vec!["li".to_owned()];
        check("bin/kubectl_complete-operator li", Invocation::Completions(words));
    }

    #[test]
    fn kubectl_completes_commands_options_and_values() {
        let check = |line: &str, expected: &[&str]| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found: Vec<String> = completions(&words).found.into_iter().map(|it| it.0).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("lis", &["list"]);
        check("list --sel", &["--selector"]);
        check("list -o js", &["json", "jsonpath=TEMPLATE"]);
        check("--context pier lis", &["list"]);
        check("--context lis", &[]);
    }

    /// The names that complete a line, whose last word is incomplete.
    fn named(line: &[&str]) -> Vec<(String, String)> {
        let words: Vec<String> = line.iter().map(|it| (*it).to_owned()).collect();
        completions(&words).named.map(|it| it.completions()).unwrap_or_default()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, help)| ((*name).to_owned(), (*help).to_owned())).collect()
    }

    #[test]
    fn packages_of_a_catalog_complete_the_commands_that_take_packages() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("main.json");
        let package = |name: &str| {
            format!(
                r#"{{"schema":"olm.package","name":"{name}","defaultChannel":"stable"}}
{{"schema":"olm.channel","package":"{name}","name":"stable","entries":[{{"name":"{name}.v1.0.0"}}]}}
{{"schema":"olm.bundle","package":"{name}","name":"{name}.v1.0.0","image":"example.com/{name}:1","properties":[{{"type":"olm.package","value":{{"packageName":"{name}","version":"1.0.0"}}}}]}}
"#
            )
        };
        std::fs::write(&path, ["bar", "baz", "foo"].map(package).concat()).unwrap();
        let option = format!("--catalog={}", path.display());
        let (bar, baz) = (("bar", "main"), ("baz", "main"));
        assert_eq!(named(&["show", &option, "ba"]), pairs(&[bar, baz]));
        assert_eq!(named(&["install", "bar", &option, "ba"]), pairs(&[baz]));
        assert_eq!(named(&["resolve", &option, "x"]), []);
        // A second package, a word and the value of an option are no packages.
        assert_eq!(named(&["show", &option, "bar", "ba"]), []);
        assert_eq!(named(&["search", &option, "ba"]), []);
        assert_eq!(named(&["install", &option, "--channel", "ba"]), []);
        assert_eq!(named(&["show", "--catalog", "absent.json", "ba"]), []);
    }
}
