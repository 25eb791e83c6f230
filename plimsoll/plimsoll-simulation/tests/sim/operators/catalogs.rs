//! The content of the catalog of a simulation, in directories that are created once for all
//! scenarios.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The content of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogContent {
    /// The first versions of each package.
    Early,
    /// All packages.
    Whole,
    /// All packages but ledger, which lantern requires.
    WithoutLedger,
    /// All packages. The newest versions of ledger and lantern cannot be read.
    Broken,
    /// No content: the directory of the catalog does not exist.
    Missing,
}

impl CatalogContent {
    /// Returns the directory with the content.
    pub(super) fn path(self) -> PathBuf {
        catalogs().join(format!("{self:?}"))
    }
}

/// Returns the directory of all catalogs, which is created once for all scenarios.
pub(crate) fn catalogs() -> &'static Path {
    static CATALOGS: OnceLock<tempfile::TempDir> = OnceLock::new();
    CATALOGS.get_or_init(|| write_catalogs().expect("catalogs can be written")).path()
}

fn write_catalogs() -> std::io::Result<tempfile::TempDir> {
    let examples = std::path::absolute("../../examples/catalog")?;
    let root = tempfile::tempdir()?;
    for content in [
        CatalogContent::Early,
        CatalogContent::Whole,
        CatalogContent::WithoutLedger,
        CatalogContent::Broken,
    ] {
        let target = root.path().join(format!("{content:?}"));
        copy(&examples, &target)?;
        let late = ["lantern/1.1.1", "lantern/2.0.0", "lantern/2.1.0-rc.1", "ledger/2.0.0"];
        match content {
            CatalogContent::Early => {
                for bundle in late.iter().chain(&["ledger/1.5.0", "tide/0.4.0"]) {
                    fs::remove_dir_all(target.join(bundle))?;
                }
            }
            CatalogContent::WithoutLedger => fs::remove_dir_all(target.join("ledger"))?,
            CatalogContent::Broken => {
                for bundle in late {
                    let (package, _) = bundle.split_once('/').unwrap_or_default();
                    let file = format!("{bundle}/manifests/{package}.clusterserviceversion.yaml");
                    fs::write(target.join(file), "spec: [\n")?;
                }
            }
            CatalogContent::Whole | CatalogContent::Missing => {}
        }
    }
    Ok(root)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
