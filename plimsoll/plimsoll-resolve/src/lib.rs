//! What to install so that every dependency holds, or why it cannot be done.
//!
//! Pure: a problem goes in, a solution or an explanation comes out; no Kubernetes, no IO.
//!
//! 1. Loaded catalogs implement [`Catalog`]; [`collect_problem`] takes what a [`Query`] can reach of
//!    them and makes a [`Problem`], a value that can be written and read again.
//! 2. [`solve`] finds the [`Solution`] that is preferred, or an [`Explanation`] of why there is
//!    none and what could be changed.

mod bundle;
mod catalog;
mod channel;
mod collect;
mod conflict;
mod encode;
mod explain;
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
pub use catalog::{Catalog, CatalogSource, Expressions};
pub use collect::collect_problem;
pub use explain::{
    Explanation, ExplanationStep, ExplanationStepKind, SuggestedChange, SuggestedChangeKind,
};
pub use package::{Channel, ChannelEntry, Package};
pub use problem::{
    BundleExclusion, CatalogName, CatalogPart, ChannelPolicy, ClusterFacts, FORMAT,
    FollowedChannel, InstalledBundle, OperatorGroup, PackageRequest, Problem, ProblemError,
    ProviderChoice, Query, ResolutionOverrides,
};
pub use properties::{CONSTRAINT_BYTES_MAX, bundle_from_properties};
pub use solution::{
    InstallReason, KeptBundle, LowerRanked, PlannedBundle, RefusedCandidate, Solution,
};
pub use solve::{Resolution, solve, solve_path};
