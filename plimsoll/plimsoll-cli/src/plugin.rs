//! The program as a plug-in of kubectl: the same binary under other names.
//!
//! `kubectl operator` runs `kubectl-operator`, and asks `kubectl_complete-operator` for completions.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, CommandFactory as _, Parser};

use crate::commands::Command;
use crate::commands::operator::OperatorArguments;
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
    for (value, help) in completions(words) {
        text.push_str(&format!("{value}\t{help}\n"));
    }
    // Nobody is left to read of an error.
    let _ = writeln!(out, "{text}{NO_FILES}");
    exit::SUCCESS.into()
}

/// Subcommands, options and values that may take the place of the last word, with their help.
fn completions(words: &[String]) -> Vec<(String, String)> {
    let mut root = PluginArguments::command();
    root.build();
    let mut command = &root;
    let (begun, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", words),
    };
    let mut value_of: Option<&Arg> = None;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        match option(command, word) {
            Some(option) if option.get_action().takes_values() && !word.contains('=') => {
                value_of = Some(option);
            }
            Some(_) => {}
            None => command = command.find_subcommand(word).unwrap_or(command),
        }
    }
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
    use super::*;

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
            let found: Vec<String> = completions(&words).into_iter().map(|it| it.0).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("lis", &["list"]);
        check("list --sel", &["--selector"]);
        check("list -o js", &["json", "jsonpath=TEMPLATE"]);
        check("--context pier lis", &["list"]);
        check("--context lis", &[]);
    }
}
