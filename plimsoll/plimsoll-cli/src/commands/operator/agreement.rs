//! Plans that a person agrees to: what was shown is what is done.

use std::io::Write;

use anyhow::bail;

use super::delete::write_difference;
use crate::prompt::{DefaultAnswer, Respondent};

/// A plan with what it was made from.
pub(super) trait Planned {
    /// The plan for people.
    fn text(&self) -> String;

    /// Whether carrying out the other one does the same.
    fn is_like(&self, other: &Self) -> bool;
}

/// Asks whether a plan that was shown is to be carried out, and plans again, since what it was made from
/// may have changed meanwhile. `None` if it is not agreed to.
///
/// # Errors
///
/// When the terminal cannot be read or written, planning fails, or the plan is another one now; the
/// difference has been printed then.
pub(super) async fn agreed<P: Planned>(
    shown: &P,
    question: &str,
    default: DefaultAnswer,
    person: &mut Respondent,
    out: &mut dyn Write,
    again: impl AsyncFnOnce(&mut dyn Write) -> Result<P, anyhow::Error>,
) -> Result<Option<P>, anyhow::Error> {
    if !person.confirm(question, default, out)? {
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
