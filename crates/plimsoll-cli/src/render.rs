//! What people see: live views, tables, logs.

pub mod format;
pub mod graph;
pub mod live;
pub mod logs;
pub mod table;
