//! The resolver as its users see it: problems in, solutions and explanations out.

mod fresh_installs;
mod hostile;
mod laws;
mod memory;
mod rules;
mod scenarios;
