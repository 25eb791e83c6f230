//! The directories that the sources of Catalog objects must be in.
//!
//! Who may create a Catalog is no administrator of the machine that reads it: without this check,
//! every file of the controller could be named as a catalog.

use std::fs;
use std::path::{Component, Path, PathBuf};

use plimsoll_api::olm::CatalogSource;

use super::{CatalogError, unreadable};

/// Directories that sources must be in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogRoots(Vec<PathBuf>);

impl CatalogRoots {
    /// Creates the list; an empty one has no source in it.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(directories.into_iter().collect())
    }

    /// Returns a source with its path as it is without symbolic links.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Outside`] when the path leads out of the directories, whatever is there;
    /// [`CatalogError::Unreadable`] when it is in one of them and cannot be found.
    pub fn resolve(&self, source: &CatalogSource) -> Result<CatalogSource, CatalogError> {
        let path = Path::new(&source.path);
        let outside = || CatalogError::Outside {
            path: path.to_owned(),
            roots: self.0.iter().map(|it| it.display().to_string()).collect(),
        };
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            // Outside of the directories, the error would say what exists there.
            Err(_) if !self.0.iter().any(|root| is_below(path, root)) => return Err(outside()),
            Err(error) => return Err(unreadable(path, error)),
        };
        let mut roots = self.0.iter().filter_map(|root| fs::canonicalize(root).ok());
        if !roots.any(|root| target.starts_with(root)) {
            return Err(outside());
        }
        let path = target.into_os_string().into_string().map_err(|_| outside())?;
        Ok(CatalogSource { path, ..source.clone() })
    }
}

/// Returns whether a path is below a directory by its name alone.
fn is_below(path: &Path, root: &Path) -> bool {
    path.starts_with(root) && path.components().all(|it| it != Component::ParentDir)
}

#[cfg(test)]
mod tests {
    //! Paths, and whether they are inside.

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_is_in_one_of_the_directories_is_read() {
        let root = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(root.path()).expect("it exists");
        for name in ["catalogs/a", "other/secret"] {
            fs::create_dir_all(root.join(name)).expect("a directory");
        }
        symlink("a", root.join("catalogs/inside")).expect("a link");
        symlink("../other/secret", root.join("catalogs/outside")).expect("a link");
        symlink("../nothing", root.join("catalogs/dangling")).expect("a link");
        symlink("catalogs", root.join("link")).expect("a link");
        let roots = CatalogRoots::new([root.join("link")]);
        let resolved = |roots: &CatalogRoots, path: &Path| {
            let path = path.to_string_lossy().into_owned();
            let source = CatalogSource { path, ..CatalogSource::default() };
            match roots.resolve(&source) {
                Ok(source) => source.path.replace(&*root.to_string_lossy(), "ROOT"),
                Err(error) => match error {
                    CatalogError::Outside { .. } => "outside".to_owned(),
                    CatalogError::Unreadable { .. } => "unreadable".to_owned(),
                    other => other.to_string(),
                },
            }
        };
        for (path, expected) in [
            ("catalogs/a", "ROOT/catalogs/a"),
            ("link/a", "ROOT/catalogs/a"),
            ("link/inside", "ROOT/catalogs/a"),
            ("link", "ROOT/catalogs"),
            ("link/missing", "unreadable"),
            ("link/outside", "outside"),
            ("link/../other/secret", "outside"),
            ("link/../other/missing", "outside"),
            ("other/secret", "outside"),
            ("other/missing", "outside"),
        ] {
            assert_eq!(resolved(&roots, &root.join(path)), expected, "{path}");
        }
        assert_eq!(resolved(&roots, Path::new("/etc/passwd")), "outside");
        assert_eq!(resolved(&CatalogRoots::default(), &root.join("catalogs/a")), "outside");
        let source = CatalogSource { path: "/etc/passwd".into(), ..CatalogSource::default() };
        let error = CatalogRoots::new(["/catalogs".into()]).resolve(&source);
        assert_eq!(
            error.expect_err("it is outside").to_string(),
            "`/etc/passwd` is in none of the directories that catalogs are read from (/catalogs): \
             put the catalog into one, or name its directory with `plimsoll run --catalog-dir DIR`"
        );
    }
}
