//! `plimsoll bundle render`: the objects that install a bundle.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_bundle::{
    Bundle, BundleConfig, CertificateProvider, RenderOptions, load, object_key, read_config,
    read_deployment_config, render,
};
use plimsoll_content::yaml;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};
use plimsoll_source::catalog::bundle_files;
use serde_json::Value;

use crate::exit;
use crate::render::format::Format;

const PROVIDERS: [&str; CertificateProvider::ALL.len()] =
    ["none", "cert-manager", "service-ca", "built-in"];

/// The beginning of a list of problems.
pub(super) const CANNOT_BE_RENDERED: &str = "cannot be rendered";

/// Arguments of `plimsoll bundle render`.
#[derive(Debug, Args)]
pub struct RenderArguments {
    /// Directory with `manifests` and `metadata`
    directory: PathBuf,
    /// Namespace that the operator runs in; without it, the one that the bundle suggests, or the
    /// name of its package
    #[arg(long, short)]
    namespace: Option<String>,
    /// Namespace that the operator watches, may be repeated; without it, all of them
    #[arg(long = "watch-namespace", value_name = "NAMESPACE")]
    watch_namespaces: Vec<String>,
    /// Who issues the certificates of webhooks and API services
    #[arg(
        long,
        value_name = "PROVIDER",
        default_value = "built-in",
        value_parser = PossibleValuesParser::new(PROVIDERS)
    )]
    certificates: String,
    /// YAML file with `watchNamespace` and `deploymentConfig`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

pub(super) fn run(
    arguments: &RenderArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let path = &arguments.directory;
    let bundle = read_bundle(path)?;
    let options = options(&bundle, arguments)?;
    let rendered =
        render(&bundle, &options).map_err(|defects| refusal(path, CANNOT_BE_RENDERED, &defects))?;
    if !arguments.output.write(&rendered.objects, out)? {
        for object in &rendered.objects {
            writeln!(out, "{}", on_one_line(&object_key(object).reference()))?;
        }
    }
    Ok(exit::SUCCESS.into())
}

/// Reads the bundle in a directory.
pub(super) fn read_bundle(path: &Path) -> Result<Bundle, anyhow::Error> {
    let context = || format!("failed to read bundle `{}`", path.display());
    let (files, unreadable) = bundle_files(path).with_context(context)?;
    ensure!(
        ["manifests/", "metadata/"]
            .iter()
            .all(|part| files.iter().any(|file| file.path.starts_with(part))),
        "`{}` is no bundle: it needs the directories manifests and metadata",
        path.display()
    );
    let refused = |defects: &[_]| refusal(path, CANNOT_BE_RENDERED, defects);
    if !unreadable.is_empty() {
        return Err(refused(&unreadable));
    }
    load(&files).map_err(|defects| refused(&defects))
}

/// An error that lists problems, one a line.
pub(super) fn refusal(path: &Path, what: &str, problems: &[impl Display]) -> anyhow::Error {
    let lines: Vec<String> = problems.iter().map(|it| on_one_line(&it.to_string())).collect();
    anyhow!("`{}` {what}:\n  {}", path.display(), lines.join("\n  "))
}

fn options(bundle: &Bundle, arguments: &RenderArguments) -> Result<RenderOptions, anyhow::Error> {
    let install_namespace = arguments
        .namespace
        .clone()
        .or_else(|| bundle.suggested_namespace())
        .unwrap_or_else(|| bundle.package.clone());
    let config = match &arguments.config {
        Some(path) => configured(bundle, &install_namespace, path, &arguments.watch_namespaces)?,
        None => BundleConfig::default(),
    };
    let mut target_namespaces = arguments.watch_namespaces.clone();
    target_namespaces.extend(config.watch_namespace);
    let provider = CertificateProvider::ALL
        .into_iter()
        .find(|provider| provider.as_str() == arguments.certificates);
    Ok(RenderOptions {
        install_namespace,
        target_namespaces,
        certificates: provider.unwrap_or_default(),
        deployment_config: config.deployment,
    })
}

/// Reads what a file configures. Namespaces of the command line take the place of `watchNamespace`.
fn configured(
    bundle: &Bundle,
    install_namespace: &str,
    path: &Path,
    watch_namespaces: &[String],
) -> Result<BundleConfig, anyhow::Error> {
    let context = || format!("failed to read `{}`", path.display());
    let text = read_text(path, WRITTEN_SIZE_MAX).with_context(context)?;
    let config: Value = yaml::read(&text).with_context(context)?;
    let refused = |problems: &[_]| refusal(path, "is no configuration of the bundle", problems);
    if watch_namespaces.is_empty() {
        return read_config(bundle, install_namespace, &config).map_err(|it| refused(&it));
    }
    let only_deployments =
        config.as_object().is_some_and(|fields| fields.keys().all(|it| it == "deploymentConfig"));
    ensure!(
        only_deployments,
        "`{}` may only have deploymentConfig: the namespaces are given by --watch-namespace",
        path.display()
    );
    let deployment =
        read_deployment_config(&config["deploymentConfig"]).map_err(|it| refused(&it))?;
    Ok(BundleConfig { watch_namespace: None, deployment })
}

#[cfg(test)]
mod tests {
    use super::{CertificateProvider, PROVIDERS};

    #[test]
    fn every_provider_can_be_named() {
        let names = CertificateProvider::ALL.map(CertificateProvider::as_str);
        assert_eq!(names, PROVIDERS);
    }
}
