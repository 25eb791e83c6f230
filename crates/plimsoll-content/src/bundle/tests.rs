//! Directories of bundles and what becomes of them.
