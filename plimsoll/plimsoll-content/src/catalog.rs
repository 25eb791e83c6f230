//! Catalogs of operators: every form they are written in, and the index that they become.
//!
//! A [`CatalogLoader`] takes the bytes of a catalog's files and makes an [`CatalogIndex`] of them, with every
//! [`Diagnostic`](crate::diagnostic::Diagnostic) and its place. A defective package is invalid and says why; it never hides others.
//! The index is what is asked: a query for one package touches that package only.
//!
//! A catalog is *file-based*: JSON or YAML documents with the schemas `olm.package`,
//! `olm.channel`, `olm.bundle` and `olm.deprecations` (RES-1). Directories of bundles and
//! package manifests are turned into such documents first (`crate::bundle`).

mod assemble;
mod constraint;
mod convert;
mod defect;
mod document;
mod index;
mod load;
mod model;
mod offer;
mod order;
mod pending;
mod property;
mod providing;
mod record;
mod search;
mod summary;
mod tables;
mod wanted;

pub use constraint::{CONSTRAINT_NESTING_MAX, CONSTRAINT_SIZE_MAX};
pub use convert::documents;
pub use defect::DefectCode;
pub use index::{
    CatalogCounts, CatalogIndex, FORMAT_VERSION, IndexError, IndexStorage, PackageBlock,
};
pub use load::{CatalogLoader, DEFECTS_MAX, DOCUMENT_SIZE_MAX, FileLoader, LoadedCatalog};
pub use model::{
    BundleDetails, ChannelError, IndexedApi, IndexedBundle, IndexedChannel, IndexedConstraint,
    IndexedEntry, IndexedPackage, IndexedPackageRange, IndexedProperty, IndexedRequirement,
    IndexedRule, InstallModes,
};
pub use offer::IndexedCatalog;
pub use providing::{ApiProviders, NamedIndex, ProvidingPackage, WantedApi, api_providers};
pub use record::{LIST_MAX, Text};
pub use search::BundleSearch;
pub use summary::PackageSummary;
pub use wanted::CatalogBundle;

#[cfg(test)]
mod tests;
