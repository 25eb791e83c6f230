//! Whatever two definitions say: there is a verdict, the same each time, and a definition may replace
//! itself.
//!
//! The input is one definition, a line of `===`, and another one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_bundle::crd_safety::{UpgradeProblem, UpgradeRule, check, invalidated};
use plimsoll_content::yaml;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Some((old, new)) = text.split_once("===\n") else { return };
    let (Ok(old), Ok(new)) = (yaml::read::<Value>(old), yaml::read::<Value>(new)) else { return };
    let verdict = check(&old, &new);
    assert_eq!(verdict, check(&old, &new), "a verdict is the same each time");
    let _ = invalidated(&old, &new, std::slice::from_ref(&new));
    for definition in [&old, &new] {
        // A version may be listed twice, and then differ from itself; and objects may be stored in one
        // that the definition lacks already.
        if let Ok(verdict) = check(definition, definition) {
            let versions = definition["spec"]["versions"].as_array().map_or(1, Vec::len);
            let is_lacking = |it: &UpgradeProblem| it.rule == UpgradeRule::StoredVersionRemoval;
            let is_allowed = verdict.problems.iter().all(is_lacking);
            assert!(is_allowed || versions > 1, "{verdict:?}");
        }
    }
});
