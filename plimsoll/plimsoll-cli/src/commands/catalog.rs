//! `plimsoll catalog`: inspect catalogs of operators without a cluster.

mod convert;
mod graph;
mod info;
mod lint;
pub(crate) mod search;
pub(crate) mod show;

use std::io::Write;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use plimsoll_operators::RequestedPackage;

use crate::arguments::catalog::CatalogArguments;
use crate::render::format::{Format, FormatParser};

/// What can be asked about a catalog.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Report all problems of a catalog
    Lint(LintArguments),
    /// Show the size of a catalog and its invalid packages
    Info(InfoArguments),
    /// List the packages of a catalog that match all words
    Search(SearchArguments),
    /// Show a package: channels, versions, provided and required APIs, update graph
    Show(ShowArguments),
    /// Convert a catalog to a file-based catalog
    Convert(ConvertArguments),
}

/// Arguments of `plimsoll catalog lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    #[command(flatten)]
    catalog: CatalogArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::FINDINGS, default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll catalog info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    #[command(flatten)]
    catalog: CatalogArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll catalog search`.
#[derive(Debug, Args)]
pub struct SearchArguments {
    #[command(flatten)]
    catalog: CatalogArguments,
    /// Words that names, descriptions or provided kinds must contain; all packages without any
    words: Vec<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll catalog show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    #[command(flatten)]
    catalog: CatalogArguments,
    /// Name of the package, with the versions to show if not all, such as foo@~1.2
    #[arg(value_name = "PACKAGE[@RANGE]")]
    package: RequestedPackage,
    /// Only this channel
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    channel: Option<String>,
    /// Output format; pictures show the update graph
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::PICTURES, default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll catalog convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    #[command(flatten)]
    catalog: CatalogArguments,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Documents,
}

/// What a file-based catalog is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Documents {
    /// One JSON document a line
    #[default]
    Json,
    /// YAML documents
    Yaml,
}

/// Runs the command.
///
/// # Errors
///
/// When the catalog cannot be opened at all, what is asked for is not in it, or the output cannot
/// be written.
pub fn run(command: CatalogCommand, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    match command {
        CatalogCommand::Lint(arguments) => lint::run(&arguments, out),
        CatalogCommand::Info(arguments) => info::run(&arguments, out),
        CatalogCommand::Search(arguments) => search::run(&arguments, out),
        CatalogCommand::Show(arguments) => show::run(&arguments, out),
        CatalogCommand::Convert(arguments) => convert::run(&arguments, out),
    }
}

#[cfg(test)]
mod tests;
