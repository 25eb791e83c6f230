//! `plimsoll rehearse`: an update, or a change of Operators, on a copy of the cluster, before it happens.

mod operators;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use plimsoll_content::authoring::Origin;
use plimsoll_content::diagnostic::{Diagnostic, Severity, has_errors};
use plimsoll_content::inclusion::{DEFAULT_PROFILE, ExclusionReason};
use plimsoll_content::lint::lint_included;
use plimsoll_content::payload::{SourceFile, TemplateContext};
use plimsoll_content::{Manifest, Payload};
use plimsoll_plan::plan::Excluded;

use crate::arguments::cluster::ClusterArguments;
use crate::arguments::faults;
use crate::arguments::store::{LoadedRelease, StoreArguments};
use crate::commands::operator::catalogs::CatalogChoice;
use crate::exit;
use crate::render::count::counted;
use crate::render::diagnostics;
use crate::render::format::ignore_broken_pipe;
use crate::render::format::{Format, FormatParser};
use crate::render::logs;
use crate::render::rehearsal::RehearsalReport;
use plimsoll_api::duration;

use plimsoll_simulation::rehearsal::{ClusterSnapshot, InitialState, Rehearsal};

/// What to rehearse, and on what.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true))]
#[command(group = ArgGroup::new("initial_state").required(true))]
#[command(group = ArgGroup::new("live")
    .args(["kubeconfig", "context"])
    .multiple(true)
    .conflicts_with_all(["from", "snapshot", "install"]))]
pub struct RehearseArguments {
    /// The release to update to: a version of the store, the directory of
    /// a payload, or a reference to an image
    #[arg(
        long,
        value_name = "VERSION|DIR|REFERENCE",
        group = "change",
        conflicts_with_all = ["catalog", "no_cache"]
    )]
    pub to: Option<String>,
    /// The Operators to apply: a directory or a file of their manifests
    #[arg(
        long,
        value_name = "DIR",
        group = "change",
        conflicts_with_all = ["from", "payloads", "force", "profile", "feature_set"]
    )]
    pub operators: Option<PathBuf>,
    /// Where packages are looked for
    #[command(flatten)]
    pub catalogs: CatalogChoice,
    /// Where versions are looked for
    #[command(flatten)]
    pub store: StoreArguments,
    /// Rehearse on an installation of this release
    #[arg(long, value_name = "VERSION|DIR|REFERENCE", group = "initial_state")]
    pub from: Option<String>,
    /// Rehearse on a copy of a live cluster
    #[arg(long, group = "initial_state")]
    pub from_cluster: bool,
    /// Rehearse on the cluster in this file, as `--save` or `sandbox serve --snapshot` wrote it
    #[arg(long, value_name = "FILE", group = "initial_state")]
    pub snapshot: Option<PathBuf>,
    /// Rehearse an installation, on an empty cluster
    #[arg(long, group = "initial_state")]
    pub install: bool,
    /// The live cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Save the copy of the live cluster, with its Secrets, to this file (mode 0600)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "snapshot", "install"])]
    pub save: Option<PathBuf>,
    /// Rehearse a forced update, which accepts the risk of failed preconditions
    #[arg(long)]
    pub force: bool,
    /// YAML list of faults, as for `plimsoll sandbox operators`
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// How long each operator takes from the change of its workloads to its report
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub delay: Duration,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster; without it, the one that its controller was started with or that
    /// its FeatureGate names
    #[arg(long)]
    pub feature_set: Option<String>,
    /// Show every object, field and condition
    #[arg(long)]
    pub details: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::REPORTS, default_value_t)]
    pub output: Format,
}

/// Rehearses and reports.
///
/// # Errors
///
/// When there is nothing to rehearse on: a payload or a snapshot is defective, or the cluster
/// cannot be copied.
pub fn run(arguments: RehearseArguments, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    logs::init_quiet();
    if let Some(directory) = &arguments.operators {
        return operators::run(&arguments, directory, out);
    }
    let to = arguments.to.as_deref().context("name a release with --to")?;
    let feature_set = arguments.feature_set.as_deref();
    let LoadedRelease { files, payload, origins } =
        arguments.store.load_with_files(to, &arguments.profile, feature_set)?;
    let version = payload.release.version.clone();
    let source = LintedSource { version, files, origins };
    let found = source.lint(&[]);
    let next = Arc::new(payload);
    let faults = arguments.faults.as_deref().map(faults::read).transpose()?.unwrap_or_default();
    let (initial_state, on) = initial_state(&arguments, &next)?;
    let rehearsal = Rehearsal {
        initial_state,
        next,
        profile: arguments.profile,
        feature_set: arguments.feature_set,
        delay: arguments.delay,
        faults,
    };
    let result = rehearsal.run();
    let mut warnings = Vec::new();
    if has_errors(&found) {
        // Which documents the cluster includes is known once the update is planned.
        let excluded = result.as_ref().map(|it| it.forecast.plan.excluded.as_slice());
        warnings = source.check(excluded.unwrap_or_default())?;
        warnings.retain(|it| !found.contains(it));
    }
    let mut result = result?;
    if arguments.force {
        result.forecast = result.forecast.forced();
    }
    let mut report = RehearsalReport::of(&result, on);
    report.warnings = warnings.iter().map(ToString::to_string).collect();
    let written = report.write(&arguments.output, arguments.details, out);
    ignore_broken_pipe(written)?;
    Ok(if report.succeeds { exit::SUCCESS } else { exit::WOULD_STOP }.into())
}

/// The files of a release that is rehearsed, as `release lint` reads them.
struct LintedSource {
    version: String,
    files: Vec<SourceFile>,
    origins: BTreeMap<String, Origin>,
}

impl LintedSource {
    /// Returns what `release lint` reports: of documents that the cluster does not include, errors as warnings.
    fn lint(&self, excluded: &[Excluded]) -> Vec<Diagnostic> {
        let left_out = |manifest: &Manifest| {
            let is_same =
                |it: &&Excluded| it.file == manifest.file && it.document == manifest.document;
            let reason = &excluded.iter().find(is_same)?.reason;
            // What declares capabilities is read, and has to be right.
            (*reason != ExclusionReason::Declaration).then(|| reason.to_string())
        };
        lint_included(&self.files, &self.origins, &TemplateContext::default(), &left_out)
    }

    /// Checks that `release lint` reports no errors in what the cluster includes, which would not do what it is
    /// meant to do, in a rehearsal as in a cluster. Returns the warnings.
    fn check(&self, excluded: &[Excluded]) -> Result<Vec<Diagnostic>, anyhow::Error> {
        let (errors, rest): (Vec<_>, Vec<_>) =
            self.lint(excluded).into_iter().partition(|it| it.severity == Severity::Error);
        if errors.is_empty() {
            return Ok(rest);
        }
        bail!(
            "release {} is not rehearsed; `plimsoll release lint` reports {} in it:\n{}",
            self.version,
            counted(errors.len(), "error"),
            diagnostics::text(&errors).trim_end()
        )
    }
}

/// What it is rehearsed on, and how that is called.
fn initial_state(
    arguments: &RehearseArguments,
    next: &Payload,
) -> Result<(InitialState, String), anyhow::Error> {
    if let Some(from) = &arguments.from {
        let feature_set = arguments.feature_set.as_deref();
        let outgoing = arguments.store.load(from, &arguments.profile, feature_set)?;
        let on = format!("an installation of {}", outgoing.release.version);
        return Ok((InitialState::Release(Arc::new(outgoing)), on));
    }
    if let Some(path) = &arguments.snapshot {
        let on = format!("snapshot {}", path.display());
        return Ok((InitialState::Cluster(ClusterSnapshot::read(path)?), on));
    }
    if !arguments.from_cluster {
        return Ok((InitialState::Empty, "an empty cluster".to_owned()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let copy = runtime.block_on(async {
        let client = arguments.cluster.client("rehearse").await?;
        anyhow::Ok(ClusterSnapshot::of_cluster(&client, next).await?)
    })?;
    if let Some(path) = &arguments.save {
        copy.save(path)?;
    }
    Ok((InitialState::Cluster(copy), "a copy of the cluster".to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::RehearseArguments;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RehearseArguments,
    }

    #[test]
    fn what_belongs_to_a_live_cluster_is_refused_beside_another_initial_state() {
        let check = |line: &str, refused: Option<&str>| {
            let parsed = Line::try_parse_from(format!("rehearse --to 2 {line}").split(' '));
            let reported = parsed.err().map(|error| error.to_string());
            assert_eq!(reported.is_some(), refused.is_some(), "{line}: {reported:?}");
            let reported = reported.unwrap_or_default();
            assert!(reported.contains(refused.unwrap_or_default()), "{line}: {reported}");
        };
        check("--from 1", None);
        check("--install", None);
        check("--from-cluster --kubeconfig f --context c --save s", None);
        check("--install --kubeconfig f", Some("'--install' cannot be used with"));
        check("--from 1 --context c", Some("'--from <VERSION|DIR|REFERENCE>' cannot be used with"));
        check("--snapshot s --save t", Some("'--snapshot <FILE>' cannot be used with"));
        check("--kubeconfig f", Some("required arguments were not provided"));
        check("--from 1 --catalog c", Some("'--to <VERSION|DIR|REFERENCE>' cannot be used with"));
    }

    #[test]
    fn what_belongs_to_a_release_is_refused_beside_operators() {
        let check = |line: &str, is_refused: bool| {
            let line = format!("rehearse --operators d {line}");
            let parsed = Line::try_parse_from(line.split(' '));
            assert_eq!(parsed.is_err(), is_refused, "{line}: {:?}", parsed.err());
        };
        check("--from-cluster --catalog c --kubeconfig f --save s --faults x", false);
        check("--install --catalog c", false);
        check("--snapshot s", false);
        check("--from 1", true);
        check("--install --to 2", true);
        check("--install --payloads p", true);
        check("--install --force", true);
        check("--install --profile p", true);
    }
}
