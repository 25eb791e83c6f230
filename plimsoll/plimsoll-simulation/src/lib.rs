//! Updates tried out before they happen: dry runs on a cluster, rehearsals on a copy of it, and
//! simulated operators for clusters that have no nodes.

pub mod clock;
pub mod cluster_state;
pub mod dry_run;
pub mod rehearsal;
pub mod sample;
pub mod simulated_operators;
pub mod snapshot;
