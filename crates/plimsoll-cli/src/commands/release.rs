//! `plimsoll release`.
