//! What people see: live views, tables, logs.

pub mod live;
pub mod logs;
pub mod structured;
pub mod table;
pub mod update;
