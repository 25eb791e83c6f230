//! Reads release payloads and catalogs, builds releases and copies their images: the IO around
//! `plimsoll-content`.
//!
//! A payload may come from anybody, so nothing outside its directory is read, nothing that is not
//! an ordinary file is opened, and sizes are bounded. Everything that is wrong is reported at once.

pub mod authoring;
pub mod bounded;
pub mod catalog;
mod directory;
mod load;
pub mod registry;
pub mod store;
pub mod whole_file;

pub use directory::{
    FILE_SIZE_MAX, PAYLOAD_SIZE_MAX, ReadCause, ReadError, ReadErrors, read_directory,
};
pub use load::{LoadError, load};
