//! The alert rules and the dashboard name no metric that is not there.

use serde_json::Value;

use super::NAMES;

/// Words of the query language, and labels, that look like names of metrics.
fn metrics(expression: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    expression
        .split(|c| !word(c))
        .filter(|name| {
            ["cluster_version", "cluster_operator", "plimsoll_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        })
        // The counts of a histogram have names of their own.
        .map(|name| name.strip_suffix("_bucket").unwrap_or(name))
        .collect()
}

fn check(expression: &str) -> usize {
    let named = metrics(expression);
    for name in &named {
        assert!(NAMES.contains(name), "{name} in {expression}");
    }
    assert!(!named.is_empty() || expression.contains("up{"), "{expression} names no metric");
    named.len()
}

#[test]
fn alert_rules_name_metrics_that_are_exposed() {
    let rules = include_str!("../../../../deploy/alerts.yaml");
    let expressions: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), rules.matches("- alert: ").count());
    assert!(expressions.iter().map(|it| check(it)).sum::<usize>() >= 12);
}

#[test]
fn the_dashboard_shows_every_metric_but_one() {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../../deploy/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<&str> = targets.map(|it| it["expr"].as_str().unwrap()).collect();
    for expression in &expressions {
        check(expression);
    }
    let shown: Vec<&str> = expressions.iter().flat_map(|it| metrics(it)).collect();
    let missing: Vec<&&str> = NAMES.iter().filter(|name| !shown.contains(name)).collect();
    // Times of conditions are of use to alerts alone.
    assert_eq!(missing, [&"cluster_version_conditional_update_condition_seconds"]);
}
