//! Commands of `plimsoll operator`, as a person at a terminal runs them.

use std::io::{self, BufReader, Cursor, Read};
use std::process::ExitCode;

use clap::Parser;
use futures::future::BoxFuture;
use plimsoll_cli::commands::operator::{OperatorCommand, execute};
use plimsoll_cli::exit::{FAILURE, Refusal};
use plimsoll_cli::prompt::Prompter;
use serde::Deserialize;
use tokio::runtime::Handle;

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
    /// What is typed after `plimsoll operator`, or after `kubectl operator` if it begins so; `CATALOG` is
    /// the directory of the catalog, `FILES` one for other files. Quotes around a word are the shell's.
    pub(super) run: String,
    /// The file of `FILES` that the output is redirected to; empty for none.
    #[serde(default)]
    pub(super) into: String,
    /// What the user types at prompts, a line each; `None` without a terminal.
    #[serde(default)]
    answers: Option<Vec<String>>,
    /// Texts of the output, in this order; other text may be between them.
    #[serde(default)]
    pub(super) shows: Vec<String>,
    /// The whole output.
    #[serde(default)]
    prints: Option<String>,
    /// The error without `error: `; empty for none.
    #[serde(default)]
    pub(super) error: String,
    /// The exit code.
    #[serde(default)]
    pub(super) exit: u8,
}

impl RunCommand {
    /// A command that succeeds and shows something.
    pub(super) fn new(line: &str, shows: &str) -> Self {
        Self { run: line.to_owned(), shows: vec![shows.to_owned()], ..Self::default() }
    }

    /// A command that succeeds and prints something, and nothing else.
    pub(super) fn printing(line: &str, prints: String) -> Self {
        Self { run: line.to_owned(), prints: Some(prints), ..Self::default() }
    }

    /// A command that fails after it showed something.
    pub(super) fn failing(line: &str, shows: &[&str], error: &str) -> Self {
        Self {
            run: line.to_owned(),
            shows: shows.iter().map(|it| (*it).to_owned()).collect(),
            error: error.to_owned(),
            exit: 1,
            ..Self::default()
        }
    }

    /// Runs the command.
    pub(super) async fn play(&self, add_ons: &AddOns) {
        let prompter = match &self.answers {
            None if self.run.contains("--yes") => Prompter::AssumeYes,
            None => Prompter::NonInteractive,
            Some(answers) => {
                let typed: String = answers.iter().map(|it| format!("{it}\n")).collect();
                Prompter::Terminal(Box::new(Cursor::new(typed)))
            }
        };
        self.play_with(add_ons, prompter).await;
    }

    /// Runs the command with this prompter.
    pub(super) async fn play_with(&self, add_ons: &AddOns, mut prompter: Prompter) {
        let line = self.run.strip_prefix("kubectl operator ").unwrap_or(&self.run);
        let catalog = add_ons.catalog.path().to_string_lossy();
        let files = add_ons.files.path();
        let is_deletion = line.starts_with("delete ") || line.starts_with("autoremove");
        if is_deletion {
            add_ons.until_listable().await;
        }
        let words = line.split_whitespace().map(|word| {
            let word = word.trim_matches('\'');
            word.replace("CATALOG", &catalog).replace("FILES", &files.to_string_lossy())
        });
        let words = ["plimsoll operator".to_owned()].into_iter().chain(words);
        let CommandLine { command } = CommandLine::try_parse_from(words).expect("it is a command");
        let mut out = Vec::new();
        let client = &add_ons.harness.client;
        let ended = execute(Some(client), &command, &mut prompter, &mut out).await;
        let out = String::from_utf8(out).expect("it is text");
        let (code, error) = match ended {
            Ok(code) => (code, String::new()),
            Err(error) => match error.downcast_ref::<Refusal>() {
                Some(refusal) => (refusal.exit.into(), refusal.to_string()),
                None => (ExitCode::from(FAILURE), plimsoll_cli::exit::chain(&error)),
            },
        };
        let expected = self.error.replace("FILES", &files.to_string_lossy());
        assert_eq!(error, expected, "{line}:\n{out}");
        assert_eq!(code, ExitCode::from(self.exit), "{line}: {error}\n{out}");
        let named = |text: &str| text.replace("FILES", &files.to_string_lossy());
        if let Some(prints) = &self.prints {
            assert_eq!(out, named(prints), "{line}");
        }
        if !self.into.is_empty() {
            std::fs::write(files.join(&self.into), &out).expect("a file");
        }
        let mut rest = out.as_str();
        for text in &self.shows {
            let found = rest.split_once(named(text).as_str());
            assert!(found.is_some(), "{line} does not show {text:?} there:\n{out}");
            rest = found.map_or("", |(_, after)| after);
        }
    }
}

/// Returns a prompter whose answers arrive after something happened.
pub(super) fn answered_after<F>(happens: F, typed: &'static str) -> Prompter
where
    F: Future<Output = ()> + Send + 'static,
{
    let happens = Some(Box::pin(happens) as BoxFuture<'static, ()>);
    Prompter::Terminal(Box::new(BufReader::new(LateAnswer { happens, typed: Cursor::new(typed) })))
}

/// The input that is typed after something happened.
struct LateAnswer {
    happens: Option<BoxFuture<'static, ()>>,
    typed: Cursor<&'static str>,
}

impl Read for LateAnswer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(happens) = self.happens.take() {
            tokio::task::block_in_place(|| Handle::current().block_on(happens));
        }
        self.typed.read(buffer)
    }
}
