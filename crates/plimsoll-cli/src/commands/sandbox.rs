//! `plimsoll sandbox`.
