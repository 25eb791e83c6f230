//! The option `--dry-run`, as kubectl has it.

use clap::{Args, ValueEnum};

/// The strategy of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRunStrategy {
    /// Nothing is sent.
    Client,
    /// The API server checks what would be written, and stores nothing; so does the preview of the objects.
    Server,
}

/// The option for a dry run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DryRun {
    /// Show what would be done, and change nothing; with `server`, the API server also checks what would be
    /// written, and `install`, `resolve`, `update` and `rollback` show what would become of each object
    #[arg(
        long,
        value_name = "STRATEGY",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "client"
    )]
    dry_run: Option<DryRunStrategy>,
}

impl DryRun {
    /// Returns whether nothing is changed.
    pub(super) fn is_set(self) -> bool {
        self.dry_run.is_some()
    }

    /// Returns whether a request is sent, though perhaps only to be checked.
    pub(super) fn is_sent(self) -> bool {
        self.dry_run != Some(DryRunStrategy::Client)
    }

    /// Returns the end of a line about a change, which says that it was only tried.
    pub(super) fn suffix(self) -> &'static str {
        match self.dry_run {
            None => "",
            Some(DryRunStrategy::Client) => " (dry run)",
            Some(DryRunStrategy::Server) => " (server dry run)",
        }
    }

    /// Returns whether the API server checks what would be written.
    pub(super) fn is_on_server(self) -> bool {
        self.dry_run == Some(DryRunStrategy::Server)
    }
}
