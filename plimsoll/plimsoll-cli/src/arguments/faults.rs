//! Files of faults for simulated operators.

use std::path::Path;

use anyhow::Context as _;
use plimsoll_simulation::simulated_operators::Faults;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};

/// Reads a file of faults.
///
/// # Errors
///
/// When it cannot be read, or is not a list of faults; the message names the file.
pub(crate) fn read(path: &Path) -> Result<Faults, anyhow::Error> {
    let context = || format!("failed to read faults from `{}`", path.display());
    let text = read_text(path, WRITTEN_SIZE_MAX).with_context(context)?;
    Faults::parse(&text).with_context(context)
}
