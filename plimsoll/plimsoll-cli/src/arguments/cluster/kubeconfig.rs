//! Finding and reading kubeconfigs as kubectl does.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kube::config::Kubeconfig;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};

/// A kubeconfig, merged from the files that exist.
pub(super) struct FoundKubeconfig {
    pub(super) kubeconfig: Kubeconfig,
    /// Its files, for messages.
    pub(super) origin: String,
}

/// The kubeconfig of the command line, of KUBECONFIG, or of the home directory; `None` if there is
/// none. Of a list in KUBECONFIG, files that do not exist are ignored.
///
/// Upstream: k8s.io/client-go/tools/clientcmd/loader.go: ClientConfigLoadingRules
pub(super) fn find(named: Option<&Path>) -> Result<Option<FoundKubeconfig>, anyhow::Error> {
    if let Some(path) = named {
        return merged(&[path.to_owned()]).map(Some);
    }
    let listed = env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    if let Some(list) = listed {
        return of_list(env::split_paths(&list).collect()).map(Some);
    }
    let at_home = env::home_dir().map(|home| home.join(".kube").join("config"));
    match at_home.filter(|path| path.exists()) {
        Some(path) => merged(&[path]).map(Some),
        None => Ok(None),
    }
}

fn of_list(mut paths: Vec<PathBuf>) -> Result<FoundKubeconfig, anyhow::Error> {
    paths.retain(|path| !path.as_os_str().is_empty());
    let (existing, missing): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.exists());
    if existing.is_empty() {
        bail!("none of the files in KUBECONFIG exists: {}", quoted(&missing));
    }
    merged(&existing)
}

fn merged(paths: &[PathBuf]) -> Result<FoundKubeconfig, anyhow::Error> {
    let mut kubeconfig = Kubeconfig::default();
    for path in paths {
        let context = || format!("failed to read kubeconfig `{}`", path.display());
        kubeconfig = kubeconfig.merge(read(path).with_context(context)?).with_context(context)?;
    }
    Ok(FoundKubeconfig { kubeconfig, origin: quoted(paths) })
}

fn read(path: &Path) -> Result<Kubeconfig, anyhow::Error> {
    let text = read_text(path, WRITTEN_SIZE_MAX)?;
    // Relative paths in a file are relative to its directory; a pipe has none.
    if path.is_file() {
        return Ok(Kubeconfig::read_from(path)?);
    }
    Ok(Kubeconfig::from_yaml(&text)?)
}

fn quoted(paths: &[PathBuf]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    quoted.join(", ")
}

impl FoundKubeconfig {
    /// Whether it has any context: one whose last cluster was deleted has none.
    pub(super) fn has_context(&self) -> bool {
        let current = self.kubeconfig.current_context.as_deref().unwrap_or_default();
        !current.is_empty() || !self.kubeconfig.contexts.is_empty()
    }

    /// Refuses a context that the kubeconfig does not have, or the lack of one.
    pub(super) fn check_context(&self, named: Option<&str>) -> Result<(), anyhow::Error> {
        let Self { kubeconfig, origin } = self;
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|it| it.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
        match (named, current) {
            (Some(name), _) if !names.contains(&name) => {
                bail!("--context: kubeconfig {origin} has no context {name:?}; it has {known}")
            }
            (None, None) => bail!(
                "kubeconfig {origin} has no current context; name one with --context: it has \
                 {known}"
            ),
            (None, Some(name)) if !names.contains(&name) => bail!(
                "kubeconfig {origin} has no context {name:?}, which is its current one; name \
                 another with --context: it has {known}"
            ),
            (Some(_), _) | (None, Some(_)) => Ok(()),
        }
    }
}
