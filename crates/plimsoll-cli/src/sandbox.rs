//! The sandbox: an embedded cluster with stand-ins for what needs nodes.
