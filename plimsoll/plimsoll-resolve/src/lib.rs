#![doc = include_str!("../README.md")]
mod bundle;
mod catalog;
mod channel;
mod collect;
mod conflict;
mod encode;
mod explain;
mod matching;
mod model;
mod names;
pub mod offer;
mod package;
pub mod printable;
mod problem;
mod properties;
pub mod range;
mod render;
pub mod requirement;
mod sat;
mod search;
mod solution;
mod solve;
pub mod version;

pub use bundle::{Api, Bundle, Constraint, InstallMode, Property, Requirement};
pub use catalog::{Catalog, CatalogSource, Expressions, RULES_COST_MAX};
pub use collect::{collect_problem, fill_properties};
pub use explain::{
    ExplainedConflict, Explanation, ExplanationStep, ExplanationStepKind, SuggestedChange,
    SuggestedChangeKind,
};
pub use names::NameIndex;
pub use package::{Channel, ChannelEntry, Package};
pub use problem::{
    BundleExclusion, CatalogName, CatalogPart, ChannelPolicy, ClusterFacts, FORMAT,
    FollowedChannel, InstalledBundle, OperatorGroup, PackageRequest, Problem, ProblemError,
    ProviderChoice, Query, ResolutionOverrides,
};
pub use properties::{CONSTRAINT_BYTES_MAX, bundle_from_properties};
pub use solution::{
    InstallReason, KeptBundle, LowerRanked, PlannedBundle, RefusedCandidate, Solution,
    UnreachableBundle,
};
pub use solve::{PathEnd, Resolution, UpdatePath, solve, solve_path, solve_unexplained};
