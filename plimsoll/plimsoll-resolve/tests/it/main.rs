//! The resolver as its users see it: problems in, solutions and explanations out.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "these are tests, also where they are not test functions; some read files"
)]

mod fresh_installs;
mod hostile;
mod laws;
mod memory;
mod rules;
mod scenarios;
