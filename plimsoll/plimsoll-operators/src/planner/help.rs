//! What would resolve a conflict, in the words of the commands for Operators.

use plimsoll_resolve::{Explanation, ExplanationStepKind, SuggestedChangeKind};

use super::CHANNEL;

/// Returns an explanation without the channels of [`Destinations`](super::Destinations), whose suggestions can
/// be carried out with the commands for Operators: those of an installation, which has options for them, or of
/// an update.
pub(crate) fn for_commands(mut explanation: Explanation, is_install: bool) -> Explanation {
    for conflict in &mut explanation.conflicts {
        for step in &mut conflict.steps {
            if step.kind == ExplanationStepKind::Installed
                && let Some(text) = stays(&step.text)
            {
                step.text = text;
            }
        }
        conflict.changes.retain_mut(|change| match change.kind {
            SuggestedChangeKind::Remove => {
                // The name of a bundle begins with that of its package.
                let bundle = change.text.trim_start_matches("uninstall ").to_owned();
                let package = bundle.split_once(".v").map_or(bundle.as_str(), |it| it.0);
                change.text =
                    format!("delete Operator {package}: `kubectl operator delete {package}`");
                true
            }
            SuggestedChangeKind::IgnoreDependencies => {
                change.text.push_str(": `--no-dependencies`");
                is_install
            }
            SuggestedChangeKind::Channel => {
                // Which channel an Operator follows is not said on the command line of another one.
                let is_of_other = change.text.starts_with("let ");
                if let Some((request, channel)) = change.text.split_once(" from channel `") {
                    let channel = channel.trim_end_matches('`');
                    change.text = match (is_install, request.strip_prefix("request ")) {
                        (false, Some(name)) => format!("set spec.channel of {name} to {channel}"),
                        (true, _) | (false, None) => {
                            format!("{}: `--channel {channel}`", change.text)
                        }
                    };
                }
                !is_of_other
            }
            SuggestedChangeKind::AnyChannel => false,
            SuggestedChangeKind::Version
            | SuggestedChangeKind::Override
            | SuggestedChangeKind::Catalog
            | SuggestedChangeKind::Range
            | SuggestedChangeKind::Cluster
            | SuggestedChangeKind::LeaveOut => true,
        });
    }
    explanation
}

/// Returns what to say of an installed bundle that no destination follows; `None` if one does.
fn stays(text: &str) -> Option<String> {
    let (bundle, why) = text.split_once(" is installed")?;
    let is_stuck = why.starts_with(" without a channel") || why.contains(&format!("`{CHANNEL}`"));
    is_stuck.then(|| format!("{bundle} is installed, and stays as it is"))
}
