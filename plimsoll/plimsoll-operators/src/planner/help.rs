//! What would resolve a conflict, in the words of the commands for Operators.

use std::collections::BTreeMap;

use plimsoll_resolve::{Explanation, ExplanationStepKind, SuggestedChangeKind};

use super::{CHANNEL, hold};
use crate::RequestedOperator;

/// Returns an explanation without the channels of [`Destinations`](super::Destinations), whose suggestions can
/// be carried out with the commands for Operators: those of an installation, which has options for them, or of
/// an update. Of an installed bundle that no plan may change it is said why, and what would allow that.
pub(crate) fn for_commands(
    mut explanation: Explanation,
    is_install: bool,
    operators: &BTreeMap<String, RequestedOperator>,
) -> Explanation {
    for conflict in &mut explanation.conflicts {
        for step in &mut conflict.steps {
            if step.kind == ExplanationStepKind::Installed
                && let Some(text) = stays(&step.text, operators)
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
fn stays(text: &str, operators: &BTreeMap<String, RequestedOperator>) -> Option<String> {
    let (bundle, why) = text.split_once(" is installed")?;
    let is_stuck = why.starts_with(" without a channel") || why.contains(&format!("`{CHANNEL}`"));
    let is_of = |(name, operator): &(&String, &RequestedOperator)| {
        operator.installed.as_ref().is_some_and(|it| {
            bundle == it.bundle.name || bundle == format!("{name} {}", it.bundle.version)
        })
    };
    let operator = operators.iter().find(is_of);
    let held = operator.and_then(|(name, operator)| hold(name, operator));
    let held = held.map(|it| format!(": {}", it.message)).unwrap_or_default();
    is_stuck.then(|| format!("{bundle} is installed, and stays as it is{held}"))
}

#[cfg(test)]
mod tests {
    use plimsoll_resolve::{ExplainedConflict, ExplanationStep};

    use super::*;
    use crate::tests::{FIXTURE, catalogs, operators};

    #[test]
    fn what_stays_is_shown_with_what_holds_it() {
        let of = catalogs(FIXTURE);
        let check = |operator: &str, text: &str, expected: &str| {
            let operators = operators(&of, operator);
            let step = ExplanationStep {
                text: text.to_owned(),
                kind: ExplanationStepKind::Installed,
                bundles: Vec::new(),
                candidates: Vec::new(),
            };
            let conflict = ExplainedConflict { steps: vec![step], changes: Vec::new() };
            let explanation = Explanation { conflicts: vec![conflict], warnings: Vec::new() };
            let shown = for_commands(explanation, false, &operators);
            assert_eq!(shown.conflicts[0].steps[0].text, expected, "{operator}");
        };
        let bar = &of[0].package("bar").expect("a package").bundles[0];
        let (name, version) = (&bar.name, &bar.version);
        let stuck = format!("{name} is installed without a channel, so it is never updated");
        let stays = format!("{name} is installed, and stays as it is");
        let present = format!("bar: version {version}; at {version}");
        check(&present, &stuck, &stays);
        check(
            &format!("{present}; paused"),
            &stuck,
            &format!("{stays}: bar is paused: `kubectl operator resume bar` ends that"),
        );
        let follows = format!("{name} is installed and follows channel `stable`");
        check(&format!("{present}; paused"), &follows, &follows);
    }
}
