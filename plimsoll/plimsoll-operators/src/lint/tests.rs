//! Tests of lint rules as scenario files: catalogs, files of Operators, facts of the cluster, and all
//! findings.

use std::collections::BTreeMap;

use super::*;
use crate::loadout::LoadoutFile;
use crate::tests::{NoExpressions, catalogs, facts, operators};

/// The scenarios, each with a name.
const SCENARIOS: [(&str, &str); 4] = [
    ("rules", include_str!("scenarios/rules.txt")),
    ("changes", include_str!("scenarios/changes.txt")),
    ("forms", include_str!("scenarios/forms.txt")),
    ("every-defect-at-once", include_str!("scenarios/every-defect-at-once.txt")),
];

/// A scenario of a file: `=== TITLE` begins one, `--- PART` its parts.
struct Scenario<'t> {
    title: &'t str,
    parts: Vec<(&'t str, &'t str)>,
}

impl<'t> Scenario<'t> {
    fn all(text: &'t str) -> Vec<Self> {
        let scenarios = text.split("=== ").skip(1);
        let scenario = |text: &'t str| {
            let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
            let parts = rest.split("--- ").skip(1);
            let parts = parts.map(|it| it.split_once('\n').unwrap_or((it, ""))).collect();
            Self { title, parts }
        };
        scenarios.map(scenario).collect()
    }

    fn part(&self, name: &str) -> Option<&'t str> {
        self.parts.iter().find(|(it, _)| *it == name).map(|(_, text)| *text)
    }

    /// Returns the files below a name, such as `file` or `base`.
    fn files(&self, below: &str) -> Vec<LoadoutFile> {
        let parts = self.parts.iter();
        let files = parts.filter_map(|(name, text)| {
            let path = name.strip_prefix(below)?.strip_prefix(' ')?.to_owned();
            Some(LoadoutFile { path, text: (*text).to_owned() })
        });
        files.collect()
    }
}

fn found(scenario: &Scenario<'_>, loadout: &Loadout) -> Vec<Diagnostic> {
    with_inputs(scenario, loadout, lint)
}

/// Calls a function with the inputs of a scenario.
fn with_inputs<T>(
    scenario: &Scenario<'_>,
    loadout: &Loadout,
    act: impl FnOnce(LintInputs<'_>) -> T,
) -> T {
    let of = catalogs(scenario.part("catalogs").unwrap_or(crate::tests::FIXTURE));
    let current = scenario.part("cluster").map(|it| operators(&of, it)).unwrap_or_default();
    let base = scenario.files("base");
    let base = (!base.is_empty()).then(|| Loadout::read(base));
    let definitions = scenario.part("definitions").unwrap_or_default().lines();
    let definitions = definitions.filter_map(|line| line.split_once(": "));
    let definitions = definitions.map(|(name, text)| (name.to_owned(), vec![text.to_owned()]));
    let refused = scenario.part("refused").unwrap_or_default().lines();
    let refused = refused.filter_map(|line| line.split_once(": "));
    let refused = refused.filter_map(|(name, problem)| {
        let (field, message) = problem.split_once(": ")?;
        Some((name.to_owned(), vec![FieldProblem::new(field, message)]))
    });
    let unknown = scenario.part("unknown").unwrap_or_default().lines();
    let unknown = unknown.filter_map(|line| line.split_once(": "));
    let unknown = unknown.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let inputs = LintInputs {
        loadout,
        path: "loadout",
        base: base.as_ref(),
        current: &current,
        catalogs: &of,
        unavailable: &BTreeMap::new(),
        unknown: &unknown.collect(),
        facts: &facts(30),
        unsafe_definitions: &definitions.collect(),
        refused_fields: &refused.collect(),
        expressions: &NoExpressions,
    };
    act(inputs)
}

fn rendered(findings: &[Diagnostic]) -> String {
    let line = |it: &Diagnostic| {
        let help = it.help.as_ref().map_or(String::new(), |help| {
            let sign = if it.edit.is_some() { "fix" } else { "help" };
            format!("  {sign}: {help}\n")
        });
        format!("{it}\n{help}")
    };
    findings.iter().map(line).collect()
}

#[test]
fn every_scenario_has_its_findings_and_no_others() {
    let mut wrong = String::new();
    for (file, text) in SCENARIOS {
        for scenario in Scenario::all(text) {
            let loadout = Loadout::read(scenario.files("file"));
            let findings = rendered(&found(&scenario, &loadout));
            let expected = scenario.part("findings").unwrap_or_default();
            if findings.trim() != expected.trim() {
                wrong.push_str(&format!("{file}: {}\n{findings}\n", scenario.title));
            }
        }
    }
    assert!(wrong.is_empty(), "other findings:\n{wrong}");
}

#[test]
fn moves_lead_from_what_is_installed_to_what_will_be() {
    let scenarios = Scenario::all(include_str!("scenarios/changes.txt"));
    let check = |title: &str, expected: &[&str]| {
        let scenario = scenarios.iter().find(|it| it.title == title).expect("a scenario");
        let loadout = Loadout::read(scenario.files("file"));
        let moves = with_inputs(scenario, &loadout, moves);
        let moves = moves.iter().map(|it| format!("{} -> {}", it.from.name, it.to.name));
        assert_eq!(moves.collect::<Vec<_>>(), expected, "{title}");
    };
    let steps = ["foo.v1.2.3 -> foo.v1.2.5", "foo.v1.2.5 -> foo.v1.2.9"];
    check("an update that is possible", &steps);
    check("OL011 an update that no edge leads to", &[]);
    check("OL016 no Operator needs what was removed", &[]);
    check("OL012 an update from the files before", &["baz.v1.2.4 -> baz.v1.5.6"]);
}

#[test]
fn every_code_is_found_and_not_found() {
    let mut with = BTreeMap::<&str, (usize, usize)>::new();
    for scenario in SCENARIOS.iter().flat_map(|(_, text)| Scenario::all(text)) {
        let loadout = Loadout::read(scenario.files("file"));
        let findings = found(&scenario, &loadout);
        for code in LoadoutCode::ALL {
            let (has, has_not) = with.entry(code.as_str()).or_default();
            match findings.iter().any(|it| it.code == *code) {
                true => *has += 1,
                false => *has_not += 1,
            }
        }
    }
    let lacking: Vec<_> = with.iter().filter(|(_, (has, not))| *has == 0 || *not == 0).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

#[test]
fn fixes_with_one_answer_leave_no_finding_behind() {
    let mut fixes = 0;
    for scenario in SCENARIOS.iter().flat_map(|(_, text)| Scenario::all(text)) {
        let loadout = Loadout::read(scenario.files("file"));
        let findings = found(&scenario, &loadout);
        let edits = |it: &&Diagnostic| it.edit.is_some();
        let before = findings.iter().filter(edits).count();
        let fixed = apply_edits(&loadout, &findings);
        let after = found(&scenario, &fixed);
        let left: Vec<_> = after.iter().filter(edits).collect();
        assert!(left.is_empty(), "{}: {left:?}", scenario.title);
        assert_eq!(after.len(), findings.len() - before, "{}: {after:?}", scenario.title);
        fixes += before;
        let comments = |it: &Loadout| {
            let texts = it.files.iter().map(|file| file.text.matches('#').count());
            texts.sum::<usize>()
        };
        assert_eq!(comments(&fixed), comments(&loadout), "{}", scenario.title);
    }
    assert!(fixes > 3, "{fixes}");
}
