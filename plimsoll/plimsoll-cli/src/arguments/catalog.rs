//! Opening catalogs: the cache directory, progress in a terminal, damaged indices.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_content::catalog::{CatalogIndex, IndexError};
use plimsoll_source::catalog::{Bytes, Cache, Progress, open, rebuild};

/// How long a load may take before its progress is shown.
const PATIENCE: Duration = Duration::from_millis(400);

/// A catalog.
#[derive(Debug, Args)]
pub struct CatalogArguments {
    /// File or directory of the catalog; also a tree of bundle directories
    catalog: PathBuf,
    /// Read the catalog itself, whatever is cached of it
    #[arg(long)]
    no_cache: bool,
}

/// Opens a catalog and does something with it; when its cached index turns out to be damaged, it
/// is built anew and the same is done once more.
pub(crate) fn with_catalog<T>(
    arguments: &CatalogArguments,
    mut act: impl FnMut(&CatalogIndex<Bytes>) -> Result<T, anyhow::Error>,
) -> Result<T, anyhow::Error> {
    let path = &arguments.catalog;
    let cache = if arguments.no_cache { None } else { cache_directory() };
    let cache = cache.as_deref().map(Cache::new);
    let context = || format!("failed to open catalog `{}`", path.display());
    let index = shown(path, |show| open(path, cache.as_ref(), show)).with_context(context)?;
    let result = act(&index);
    if let Err(error) = &result
        && let Some(IndexError::Damaged(_) | IndexError::Io(_)) = error.downcast_ref()
    {
        let index =
            shown(path, |show| rebuild(path, cache.as_ref(), show)).with_context(context)?;
        return act(&index);
    }
    result
}

/// Where indices are kept: below `$XDG_CACHE_HOME`, or `.cache` in the home directory.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    // The specification says that relative paths are to be ignored.
    let given = given.filter(|path| path.is_absolute());
    let base = given.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?;
    Some(base.join("plimsoll").join("catalogs"))
}

/// Shows on the terminal how far a load is, if it takes long.
pub(crate) fn shown<T>(path: &Path, load: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let begun = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    let result = load(&mut |progress| {
        if bar.is_none() && begun.elapsed() > PATIENCE {
            let new =
                ProgressBar::with_draw_target(Some(progress.all), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}");
            new.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            new.set_message(format!("reading {}", path.display()));
            bar = Some(new);
        }
        if let Some(bar) = &bar {
            bar.set_position(progress.done);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    result
}
