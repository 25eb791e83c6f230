//! The commands on the catalog of the repository.
