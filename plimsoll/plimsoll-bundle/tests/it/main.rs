//! Tests against bundles and definitions.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, also where they are not test functions; their data lies in files"
)]

mod author;
mod crd_safety;
mod golden;
mod hostile;
mod install;
