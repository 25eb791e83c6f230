//! The forecast of the sample release's update.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{SourceFile, TemplateContext, parse};
use plimsoll_plan::forecast::{Forecast, StepChange, StepChangeKind, between};
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::update::preconditions::FailedPrecondition;
use plimsoll_plan::update::target::Target;

use super::ForecastReport;
use crate::render::format::Format;
use crate::render::graph::Picture;
use plimsoll_simulation::sample;

fn forecast() -> Forecast {
    let target = Target { profile: DEFAULT_PROFILE.to_owned(), ..Target::default() };
    let payload = |files: &[SourceFile]| {
        parse(files, &TemplateContext::default()).expect("the sample is in order")
    };
    let (from, to) = (payload(&sample::v1()), payload(&sample::v2()));
    let outgoing = target.plan(&from, Mode::Updating);
    let plan = Arc::new(target.plan(&to, Mode::Updating));
    between(Some(&outgoing), plan, &to.cluster_kinds())
}

fn report() -> ForecastReport {
    ForecastReport::of(&forecast())
}

fn written(format: &Format, details: bool) -> String {
    let mut out = Vec::new();
    report().write(format, details, &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("it is text")
}

#[test]
fn a_text_tells_counts_levels_and_gates() {
    let text = written(&Format::Text, false);
    assert!(text.starts_with("Update from 1.0.0 to 1.1.0: "), "{text}");
    assert!(text.contains("No blockers."), "{text}");
    assert!(text.contains("Level 30 (3 components in parallel)"), "{text}");
    assert!(text.contains("then waits for operator crane"), "{text}");
    assert!(!text.contains("deployment.apps"), "objects are details: {text}");
    let details = written(&Format::Text, true);
    assert!(details.contains("    ~ deployment.apps/"), "{details}");
    assert!(details.contains("    + "), "{details}");
}

#[test]
fn every_form_tells_the_same_plan() {
    let json: serde_json::Value =
        serde_json::from_str(&written(&Format::Json, false)).expect("it is JSON");
    let report = report();
    assert_eq!(json["planHash"], report.plan_hash.as_str());
    assert_eq!(json["counts"]["changed"], report.counts["changed"]);
    let markdown = written(&Format::Markdown, false);
    for level in &report.levels {
        for component in &level.components {
            let component = component.name.as_deref().unwrap_or("-");
            assert!(markdown.contains(&format!("| {component} |")), "{component}: {markdown}");
        }
    }
    let components: usize = report.levels.iter().map(|level| level.components.len()).sum();
    assert_eq!(
        written(&Format::Picture(Picture::Mermaid), false).matches("[\"").count(),
        components + report.levels.len()
    );
    assert!(written(&Format::Picture(Picture::Dot), false).starts_with("digraph {"));
    assert!(written(&Format::Picture(Picture::Svg), false).starts_with("<svg "));
}

#[test]
fn a_precondition_is_in_the_way_until_the_update_is_forced() {
    let finding = |reason: &str, blocking| FailedPrecondition {
        precondition: "ClusterVersionUpgradeable",
        reason: reason.to_owned(),
        message: "WHY".to_owned(),
        blocking,
    };
    let preconditions = vec![finding("OldNodes", true), finding("UnknownUpdate", false)];
    let forecast = Forecast { preconditions, ..forecast() };
    let reported = |forecast: &Forecast, format| {
        let mut out = Vec::new();
        ForecastReport::of(forecast)
            .write(format, false, &mut out)
            .expect("a vector takes everything");
        String::from_utf8(out).expect("it is text")
    };
    let text = reported(&forecast, &Format::Text);
    let expected = "\nBlockers\n  ✗ OldNodes: WHY\n      (a precondition; --force overrides it)\n\
                    \nAccepted risks\n  ! UnknownUpdate: WHY\n";
    assert!(text.contains(expected), "{text}");
    let markdown = reported(&forecast, &Format::Markdown);
    assert!(markdown.contains("## Blockers\n\n- **OldNodes**: WHY (a precondition;"), "{markdown}");
    let forced = forecast.forced();
    assert!(forced.stops().is_empty());
    let text = reported(&forced, &Format::Text);
    assert!(text.contains("No blockers.\n\nAccepted risks\n  ! OldNodes"), "{text}");
}

#[test]
fn replacements_are_named_with_the_fields_that_make_them_necessary() {
    let mut forecast = forecast();
    let changed = |change: &StepChange| change.kind() == StepChangeKind::Changed;
    let step = forecast.changes.iter().position(changed).expect("an object changes");
    let StepChange::Changed(fields) = forecast.changes[step].clone() else { panic!("it changes") };
    let because = vec!["spec.selector".to_owned(), "spec.template".to_owned()];
    forecast.changes[step] = StepChange::Replaced { because, fields };
    let object = forecast.plan.steps[step].manifest.key.reference();
    let reported = |format: &Format, details| {
        let mut out = Vec::new();
        let report = ForecastReport::of(&forecast);
        report.write(format, details, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("it is text")
    };
    let text = reported(&Format::Text, false);
    assert!(text.contains(": 1 replaced, "), "{text}");
    let named = format!("  ± {object} (spec.selector, spec.template)\n");
    assert!(text.contains(&named), "{text}");
    let details = reported(&Format::Text, true);
    let named = format!(
        "    ± {object}\n        deleted and created again, for spec.selector, spec.template\n"
    );
    assert!(details.contains(&named), "{details}");
    let markdown = reported(&Format::Markdown, false);
    let named = format!("- `{object}`, for `spec.selector`, `spec.template`\n");
    assert!(markdown.contains(&named), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_str(&reported(&Format::Json, false)).expect("it is JSON");
    assert_eq!(json["counts"]["replaced"], 1);
    assert!(json.to_string().contains(r#""replacedFor":["spec.selector","spec.template"]"#));
    let picture = reported(&Format::Picture(Picture::Mermaid), false);
    assert!(picture.contains("(spec.selector, spec.template)"), "{picture}");
    let names = reported(&Format::Name, false);
    assert!(names.lines().any(|line| line == object), "{names}");
}

#[test]
fn takeovers_are_named_with_their_objects() {
    let mut forecast = forecast();
    let changed = |change: &StepChange| change.kind() == StepChangeKind::Changed;
    let step = forecast.changes.iter().position(changed).expect("an object changes");
    forecast.taken_over.insert(step, BTreeSet::from(["helm".to_owned(), "olm".to_owned()]));
    let reported = |format: &Format| {
        let mut out = Vec::new();
        let report = ForecastReport::of(&forecast);
        report.write(format, true, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("it is text")
    };
    let text = reported(&Format::Text);
    assert!(text.contains("  ~ of helm (1 object)\n  ~ of olm (1 object)\n"), "{text}");
    assert!(text.contains("        takes over fields of helm, olm\n"), "{text}");
    let markdown = reported(&Format::Markdown);
    assert!(markdown.contains("- `helm`: 1 object\n- `olm`: 1 object\n"), "{markdown}");
    assert!(markdown.contains("  - takes over fields of `helm`, `olm`\n"), "{markdown}");
    assert!(reported(&Format::Json).contains("\"takesOver\""));
}
