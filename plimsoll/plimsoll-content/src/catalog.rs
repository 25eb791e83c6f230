//! Catalogs of operators: every form they are written in, and the index that they become.
//!
//! A [`Loader`] takes the bytes of a catalog's files and makes an [`Index`] of them, with every
//! [`Defect`] and its place. A defective package is set aside and says why; it never hides others.
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
mod file;
mod index;
mod load;
mod model;
mod offer;
mod order;
mod pending;
mod property;
mod record;
mod tables;

pub use constraint::{CONSTRAINT_NESTING_MAX, CONSTRAINT_SIZE_MAX};
pub use convert::documents;
pub use defect::{Code, Defect};
pub use file::{DOCUMENT_SIZE_MAX, FileLoader};
pub use index::{Counts, FORMAT_VERSION, Index, IndexError, PackageBlock, Storage};
pub use load::{DEFECTS_MAX, Loaded, Loader};
pub use model::{
    Api, Bundle, Channel, ChannelError, Constraint, Details, Entry, InstallModes, Package,
    PackageRange, Property, Requirement, Rule,
};
pub use offer::Offer;
pub use record::{LIST_MAX, Text};

#[cfg(test)]
mod tests;
