//! The `plimsoll` program as a library: commands, rendering, exit codes.

pub mod arguments;
pub mod commands;
pub mod exit;
mod interruption;
mod patch;
mod plugin;
mod process;
mod progress;
pub mod prompt;
pub mod render;
pub mod traces;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use plugin::Invocation;

/// Reconcile a Kubernetes cluster to a release
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Parses the command line, runs the command, says what went wrong.
pub fn main() -> ExitCode {
    // One TLS provider for the process; a second installation is a no-op.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let command = match plugin::invocation(std::env::args_os()) {
        Invocation::Program => Arguments::parse().command,
        Invocation::Plugin => plugin::PluginArguments::parse().into_command(),
        Invocation::Completions(words) => return plugin::complete(&words),
    };
    match commands::run(command) {
        Ok(code) => code,
        Err(error) => match error.downcast_ref::<exit::Refusal>() {
            Some(refusal) => {
                let head = if refusal.exit == exit::INTERRUPTED { "" } else { "Error: " };
                anstream::eprintln!("{head}{refusal}");
                refusal.exit.into()
            }
            None => {
                anstream::eprintln!("error: {}", exit::chain(&error));
                exit::FAILURE.into()
            }
        },
    }
}
