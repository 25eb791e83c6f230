//! Files of faults for simulated operators.

use std::path::Path;

use anyhow::Context as _;
use plimsoll_simulation::operators::Faults;

use super::file;

/// Reads a file of faults.
///
/// # Errors
///
/// When it cannot be read, or is not a list of faults; the message names the file.
pub(crate) fn read(path: &Path) -> Result<Faults, anyhow::Error> {
    let context = || format!("failed to read faults from `{}`", path.display());
    let text = file::read_text(path).with_context(context)?;
    Faults::parse(&text).with_context(context)
}
