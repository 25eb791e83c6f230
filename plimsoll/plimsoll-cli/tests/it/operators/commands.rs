//! Commands of `plimsoll operator`, as a person at a terminal runs them.

use std::io::Cursor;
use std::process::ExitCode;

use clap::Parser;
use plimsoll_cli::commands::operator::{OperatorCommand, execute};
use plimsoll_cli::exit::{FAILURE, Refusal};
use plimsoll_cli::prompt::Respondent;
use serde::Deserialize;

use super::AddOns;

/// A command line after `plimsoll operator`.
#[derive(Parser)]
#[command(name = "plimsoll operator")]
struct CommandLine {
    #[command(subcommand)]
    command: OperatorCommand,
}

/// A command, and what is expected of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCommand {
    /// What is typed after `plimsoll operator`; `CATALOG` is the directory of the catalog.
    run: String,
    /// What the person types at prompts, a line each; nobody is there if it is absent.
    #[serde(default)]
    answers: Option<Vec<String>>,
    /// Texts of the output, in this order; other text may be between them.
    #[serde(default)]
    shows: Vec<String>,
    /// The whole output.
    #[serde(default)]
    prints: Option<String>,
    /// The error without `error: `; empty for none.
    #[serde(default)]
    error: String,
    /// The exit code.
    #[serde(default)]
    exit: u8,
}

impl RunCommand {
    /// A command that succeeds and shows something.
    pub(super) fn new(line: &str, shows: &str) -> Self {
        Self { run: line.to_owned(), shows: vec![shows.to_owned()], ..Self::default() }
    }

    /// Runs the command.
    pub(super) async fn play(&self, add_ons: &AddOns) {
        let (line, catalog) = (&self.run, add_ons.catalog.path().to_string_lossy());
        let words = line.split_whitespace().map(|word| word.replace("CATALOG", &catalog));
        let words = ["plimsoll operator".to_owned()].into_iter().chain(words);
        let CommandLine { command } = CommandLine::try_parse_from(words).expect("it is a command");
        let mut person = match &self.answers {
            None if line.contains("--yes") => Respondent::Agreed,
            None => Respondent::Nobody,
            Some(answers) => {
                let typed: String = answers.iter().map(|it| format!("{it}\n")).collect();
                Respondent::Person(Box::new(Cursor::new(typed)))
            }
        };
        let mut out = Vec::new();
        let client = &add_ons.harness.client;
        let ended = execute(Some(client), &command, &mut person, &mut out).await;
        let out = String::from_utf8(out).expect("it is text");
        let (code, error) = match ended {
            Ok(code) => (code, String::new()),
            Err(error) => match error.downcast_ref::<Refusal>() {
                Some(refusal) => (refusal.exit.into(), refusal.to_string()),
                None => (ExitCode::from(FAILURE), plimsoll_cli::exit::chain(&error)),
            },
        };
        assert_eq!(error, self.error, "{line}:\n{out}");
        assert_eq!(code, ExitCode::from(self.exit), "{line}: {error}\n{out}");
        if let Some(prints) = &self.prints {
            assert_eq!(out, *prints, "{line}");
        }
        let mut rest = out.as_str();
        for text in &self.shows {
            let found = rest.split_once(text.as_str());
            assert!(found.is_some(), "{line} does not show {text:?} there:\n{out}");
            rest = found.map_or("", |(_, after)| after);
        }
    }
}
