//! The commands that take back what is waited for.

use plimsoll_operators::installation::InstallationState;

use super::InstallationTarget;

/// The maximum number of Operators in the commands: a longer line is not read.
const OPERATORS_MAX: usize = 10;

/// Returns a line with the commands that take back what is not installed yet, and delete what was created with it;
/// `None` if what an Operator returns to is not known. `states` and `versions` are what each target reports; a version
/// is empty if none is installed, or known.
pub(super) fn undoing(
    targets: &[InstallationTarget],
    states: &[InstallationState],
    versions: &[String],
) -> Option<String> {
    let (mut returning, mut created) = (Vec::new(), Vec::new());
    for ((target, state), version) in targets.iter().zip(states).zip(versions) {
        let InstallationTarget { name, version: wanted, is_new, returns_from } = target;
        if *is_new {
            created.push(name.clone());
        } else if *state != InstallationState::Installed {
            if let Some(revision) = returns_from {
                return Some(format!(
                    "To undo it: `operator rollback {name} --to-revision {revision}`"
                ));
            }
            if version.is_empty() || *version == wanted.to_string() {
                return None;
            }
            returning.push(format!("{name}@{version}"));
        }
    }
    if returning.len() + created.len() > OPERATORS_MAX {
        return None;
    }
    let commands = [("update", returning), ("delete", created)].into_iter();
    let commands = commands.filter(|(_, names)| !names.is_empty());
    let commands = commands.map(|(verb, names)| format!("`operator {verb} {}`", names.join(" ")));
    let commands: Vec<String> = commands.collect();
    let is_done = |(target, state): (&InstallationTarget, &InstallationState)| {
        !target.is_new && *state == InstallationState::Installed
    };
    let what = if targets.iter().zip(states).any(is_done) { "what is left" } else { "it" };
    (!commands.is_empty()).then(|| format!("To undo {what}: {}", commands.join(", then ")))
}

#[cfg(test)]
mod tests {
    use semver::Version;

    use super::*;

    /// Parses targets, one a word: `NAME=WANTED<INSTALLED`, with `+` before what is new, `-` before what leaves
    /// revision 2 for a kept one, and `!` before what is installed as it is wanted.
    fn check(text: &str, expected: Option<&str>) {
        let (mut targets, mut states, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        for word in text.split(' ') {
            let (name, rest) = word.split_once('=').expect("a name");
            let (wanted, installed) = rest.split_once('<').expect("two versions");
            let is_new = name.starts_with('+');
            let returns_from = name.starts_with('-').then_some(2);
            let name = name.trim_start_matches(['+', '-', '!']).to_owned();
            let version = Version::parse(wanted).expect("a version");
            targets.push(InstallationTarget { name, version, is_new, returns_from });
            states.push(match word.contains('!') {
                true => InstallationState::Installed,
                false => InstallationState::Unseen,
            });
            versions.push(installed.to_owned());
        }
        assert_eq!(undoing(&targets, &states, &versions).as_deref(), expected, "{text}");
    }

    #[test]
    fn what_is_created_is_deleted_and_what_moves_returns() {
        let deleted = Some("To undo it: `operator delete bar foo`");
        check("+bar=1.2.5< +foo=1.2.3<", deleted);
        check("+!bar=1.2.5<1.2.5 +foo=1.2.3<", deleted);
        check(
            "bar=1.2.7<1.2.5 +baz=1.0.0< foo=1.2.9<1.2.3",
            Some("To undo it: `operator update bar@1.2.5 foo@1.2.3`, then `operator delete baz`"),
        );
        check(
            "!bar=1.2.7<1.2.7 foo=1.2.9<1.2.3",
            Some("To undo what is left: `operator update foo@1.2.3`"),
        );
        let returns = Some("To undo it: `operator rollback foo --to-revision 2`");
        check("-foo=1.2.3<1.2.9", returns);
        check("-foo=1.2.9<1.2.9", returns);
        // It waited for another version, or its version is not the reason.
        check("foo=1.2.9<", None);
        check("+bar=1.2.5< foo=1.2.9<1.2.9", None);
        check(&["+foo=1.2.3<"; 11].join(" "), None);
    }
}
