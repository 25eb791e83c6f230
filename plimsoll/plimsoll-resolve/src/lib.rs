//! What to install so that every dependency holds, or why it cannot be done.
//!
//! Pure: a problem goes in, a solution or an explanation comes out; no Kubernetes, no IO.
//!
//! 1. Loaded catalogs implement [`Catalog`]; [`gather`] takes what a [`Question`] can reach of
//!    them and makes a [`Problem`], a value that can be written and read again.
//! 2. [`solve`] finds the [`Solution`] that is preferred, or an [`Explanation`] of why there is
//!    none and what could be changed.

mod bundle;
mod catalog;
mod channel;
mod conflict;
mod encode;
mod explain;
mod collect;
mod matching;
mod model;
mod package;
mod problem;
mod properties;
pub mod range;
mod render;
mod sat;
mod search;
mod solution;
mod solve;
pub mod version;

pub use bundle::{Api, Bundle, Constraint, InstallMode, Property, Requirement};
pub use catalog::{Catalog, Expressions, Source};
pub use explain::{Change, ChangeKind, Explanation, Sentence, SentenceKind};
pub use collect::gather;
pub use package::{Channel, Entry, Package};
pub use problem::{
    CatalogName, CatalogPart, ChannelPolicy, Exclusion, FORMAT, Facts, Follows, Installed,
    OperatorGroup, Overrides, Problem, ProblemError, ProviderChoice, Question, Request,
};
pub use properties::{CONSTRAINT_BYTES_MAX, bundle_from_properties};
pub use solution::{Alternative, Because, Item, Rather, Solution, Stay};
pub use solve::{Outcome, solve, solve_path};
