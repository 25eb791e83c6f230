//! What people see: live views, tables, logs.

pub(crate) mod age;
pub mod capability;
pub(crate) mod changes;
pub(crate) mod count;
pub(crate) mod diagnostics;
pub mod forecast;
pub mod format;
pub mod graph;
pub(crate) mod growing_table;
pub mod json_path;
pub mod live;
pub mod logs;
pub(crate) mod object;
pub mod rehearsal;
pub(crate) mod resolution;
pub mod table;
pub mod update;
