//! What the built-in kinds have of their own, in code rather than in their schemas.
//!
//! A kind is looked up by group and kind; whatever it does not mention behaves as the generic
//! object does. The parts: [`facts`] (small tables), [`prepare`] (what the server fills in),
//! [`rules`] (validation), [`network`] (allocation of addresses and ports).
pub(crate) mod facts;
pub(crate) mod network;
mod pod;
pub(crate) mod prepare;
pub(crate) mod rules;

pub(crate) use facts::{
    has_generation, may_create_on_update, may_update_unconditionally, reset_fields,
    returns_deleted_object,
};
pub(crate) use network::allocate;
pub(crate) use prepare::{admit_create, convert_input, prepare_create, prepare_update};
pub(crate) use rules::validate;
