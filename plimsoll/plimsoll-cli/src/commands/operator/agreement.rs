//! The agreement of a user to a plan: only the plan that was shown is carried out.

use std::io::Write;

use anyhow::bail;

use super::delete::write_difference;
use crate::prompt::{DefaultAnswer, Prompter};

/// A plan with the state that it was made from.
pub(super) trait Planned {
    /// Returns the plan as text for users.
    fn text(&self) -> String;

    /// Returns whether carrying out the other plan does the same.
    fn is_like(&self, other: &Self) -> bool;
}

/// Asks the user to agree to a plan that was shown, and plans again, since the state may have
/// changed in the meantime. Returns `None` if the user declines.
///
/// # Errors
///
/// When the terminal cannot be read or written, planning fails, or the new plan is another one; the
/// difference has been printed then.
pub(super) async fn agreed<P: Planned>(
    shown: &P,
    question: &str,
    default: DefaultAnswer,
    prompter: &mut Prompter,
    out: &mut dyn Write,
    again: impl AsyncFnOnce(&mut dyn Write) -> Result<P, anyhow::Error>,
) -> Result<Option<P>, anyhow::Error> {
    if !prompter.confirm(question, default, out)? {
        return Ok(None);
    }
    let current = again(out).await?;
    if !current.is_like(shown) {
        writeln!(out, "What this was planned from has changed:")?;
        write_difference(&shown.text(), &current.text(), out)?;
        bail!("nothing was changed: run the command again to see the present plan");
    }
    Ok(Some(current))
}
