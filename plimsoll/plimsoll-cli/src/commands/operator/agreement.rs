//! The agreement of a user to a plan: only the plan that was shown is carried out.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::bail;
use plimsoll_operators::deletion_plan::recreated;

use super::delete::write_difference;
use super::loadout::LoadoutState;
use crate::prompt::{DefaultAnswer, Prompter};

/// A plan with the state that it was made from.
pub(super) trait Planned {
    /// Returns the plan as text for users.
    fn text(&self) -> String;

    /// Returns whether carrying out the other plan does the same.
    fn is_like(&self, other: &Self) -> bool;

    /// Returns the uids of the Operators that it changes, by name. Another Operator of a name is not meant.
    fn uids(&self) -> BTreeMap<&str, &str>;
}

/// Returns the uids of those Operators that the cluster has, by name.
pub(super) fn uids<'a>(
    state: &'a LoadoutState,
    names: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let uid = |name: &str| state.in_cluster(name)?.metadata.uid.as_deref();
    names.filter_map(|name| Some((name, uid(name)?))).collect()
}

/// Returns the Operators that are not those of the plan that was shown any more, a clause each.
fn replaced<P: Planned>(shown: &P, current: &P) -> Vec<String> {
    let now = current.uids();
    let is_other = |(name, uid): &(&str, &str)| now.get(*name).is_some_and(|now| now != uid);
    shown.uids().into_iter().filter(is_other).map(|(name, _)| recreated(name)).collect()
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
    let replaced = replaced(shown, &current);
    if !replaced.is_empty() || !current.is_like(shown) {
        writeln!(out, "What this was planned from has changed:")?;
        for it in replaced {
            writeln!(out, "  {it}")?;
        }
        write_difference(&shown.text(), &current.text(), out)?;
        bail!("nothing was changed: run the command again to see the present plan");
    }
    Ok(Some(current))
}
