//! Readiness: whether this process does its work, check by check.

use crate::view::{OperatorsView, View};

/// A check with the reason why it fails; `None` if it does not.
type Check = (&'static str, Option<String>);

/// Returns the checks of what this process controls.
pub(super) fn checks(
    is_stopping: bool,
    release: Option<&View>,
    operators: Option<&OperatorsView>,
) -> Vec<Check> {
    let mut checks = vec![("shutdown", is_stopping.then(|| "stopping".to_owned()))];
    if let Some(release) = release {
        let unwritable = "the status of the ClusterVersion or of ReleaseProgress cannot be written";
        checks
            .push(("release-status", release.is_status_unwritable.then(|| unwritable.to_owned())));
    }
    if let Some(operators) = operators {
        let kinds: Vec<&str> = operators.unlisted.iter().copied().collect();
        let unlisted = (!kinds.is_empty()).then(|| {
            format!(
                "the API server has not listed {}: it does not answer, their definition is missing, \
                 or they may not be listed",
                kinds.join(", ")
            )
        });
        checks.push(("operators-watches", unlisted));
    }
    checks
}

/// Returns what an answer says of checks: all of them if it is verbose, and otherwise those that fail.
pub(super) fn text(checks: &[Check], is_verbose: bool) -> String {
    let lines = checks.iter().filter_map(|(name, failure)| match failure {
        Some(reason) if is_verbose => Some(format!("[-]{name} failed: {reason}")),
        Some(reason) => Some(reason.clone()),
        None => is_verbose.then(|| format!("[+]{name} ok")),
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "ok".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks both forms of an answer.
    fn check(is_stopping: bool, unlisted: &[&'static str], expected: &str, verbose: &str) {
        let release = View::default();
        let unlisted = unlisted.iter().copied().collect();
        let operators = OperatorsView { unlisted, ..OperatorsView::default() };
        let checks = checks(is_stopping, Some(&release), Some(&operators));
        assert_eq!(text(&checks, false), expected);
        assert_eq!(text(&checks, true), verbose);
    }

    #[test]
    fn each_check_is_named_and_says_why_it_fails() {
        let ok = "[+]shutdown ok\n[+]release-status ok\n[+]operators-watches ok";
        check(false, &[], "ok", ok);
        let stopping =
            "[-]shutdown failed: stopping\n[+]release-status ok\n[+]operators-watches ok";
        check(true, &[], "stopping", stopping);
        let reason = "the API server has not listed Catalogs, Operators: it does not answer, their \
                      definition is missing, or they may not be listed";
        let unlisted =
            format!("[+]shutdown ok\n[+]release-status ok\n[-]operators-watches failed: {reason}");
        check(false, &["Operators", "Catalogs"], reason, &unlisted);
    }
}
