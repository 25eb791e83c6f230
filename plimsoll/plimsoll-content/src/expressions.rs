//! Expressions of `olm.constraint`: CEL over the properties of one bundle.
//!
//! One variable, `properties`, is a list of maps with `type` and `value`; `semver_compare` compares
//! two versions. Numbers are doubles, as in the resolver that operators were written for. A rule
//! must have the type bool.

use k8s_cel::{Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, Program, Type, Value};
use plimsoll_resolve::{Expressions, Property, RULES_COST_MAX};
use serde_json::Value as Json;

/// Evaluates expressions; holds nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cel;

/// What one rule may cost for all bundles together, in units of Kubernetes' estimators: a part of what all
/// rules may cost, so that one cannot use up what the others need.
const RULE_COST_LIMIT: u64 = RULES_COST_MAX / 4;

/// Longest rule that is compiled, in bytes. A whole `olm.constraint` may have no more.
const RULE_BYTES_MAX: usize = plimsoll_resolve::CONSTRAINT_BYTES_MAX;

/// Compiles a rule.
///
/// # Errors
/// Why it is no rule, as a clause whose subject is the rule or a list of the compiler's errors.
pub fn compile(rule: &str) -> Result<Program, String> {
    if rule.len() > RULE_BYTES_MAX {
        return Err(format!("it has {} bytes, at most {RULE_BYTES_MAX}", rule.len()));
    }
    let property = Type::map(Type::String, Type::Dyn);
    let environment = Environment::for_stored_expressions()
        .with_variable("properties", Type::list(property))
        .with_semver_compare();
    let program = environment.compile(rule).map_err(|errors| errors.to_string())?;
    if *program.result_type() != Type::Bool {
        return Err(format!("its type is {}, not bool", program.result_type()));
    }
    Ok(program)
}

impl Expressions for Cel {
    fn evaluate(
        &self,
        rule: &str,
        candidates: &[&[Property]],
        cost_left: &mut u64,
    ) -> Result<Vec<bool>, String> {
        // Compiling a rule costs, and so do the values that it is evaluated with.
        charge(cost_left, rule.len() as u64)?;
        let program = compile(rule)?;
        let mut left = RULE_COST_LIMIT;
        let mut truths = Vec::with_capacity(candidates.len());
        for properties in candidates {
            charge(cost_left, 1 + properties.len() as u64)?;
            if left == 0 {
                truths.push(false);
                continue;
            }
            let bindings = Bindings::new().with("properties", value(properties));
            let mut budget = Budget::new(left.min(EXPRESSION_COST_LIMIT));
            let outcome = program.evaluate(&bindings, &mut budget);
            left = left.saturating_sub(budget.spent());
            charge(cost_left, budget.spent())?;
            truths.push(matches!(outcome, Ok(Value::Bool(true))));
        }
        Ok(truths)
    }
}

/// Takes a cost off what all rules together may cost.
fn charge(cost_left: &mut u64, cost: u64) -> Result<(), String> {
    *cost_left = cost_left.saturating_sub(cost);
    if *cost_left > 0 {
        return Ok(());
    }
    Err(format!("the expressions of all bundles together cost more than {RULES_COST_MAX} units"))
}

fn value(properties: &[Property]) -> Value {
    let property = |property: &Property| {
        Value::map([
            ("type".to_owned(), Value::string(property.kind.as_str())),
            ("value".to_owned(), Value::from_json(&with_doubles(&property.value))),
        ])
    };
    Value::list(properties.iter().map(property).collect())
}

fn with_doubles(json: &Json) -> Json {
    match json {
        Json::Number(number) => number.as_f64().map_or(Json::Null, Json::from),
        Json::Array(items) => items.iter().map(with_doubles).collect(),
        Json::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), with_doubles(value))).collect()
        }
        Json::Null | Json::Bool(_) | Json::String(_) => json.clone(),
    }
}

#[cfg(test)]
mod tests {
    //! Rules and for which bundles they hold.

    use serde_json::json;

    use super::*;

    fn check(rule: &str, expected: Result<bool, &str>) {
        let property = |kind: &str, value| Property { kind: kind.to_owned(), value };
        let properties = [
            property("olm.package", json!({"packageName": "a", "version": "1.2.3"})),
            property("olm.gvk", json!({"group": "g", "version": "v1", "kind": "K"})),
            property("size", json!(3)),
        ];
        let mut left = RULES_COST_MAX;
        match (Cel.evaluate(rule, &[&properties], &mut left), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, [expected], "{rule}"),
            (Err(found), Err(part)) => assert!(found.contains(part), "{rule}: {found}"),
            (found, _) => panic!("{rule}: {found:?}"),
        }
    }

    #[test]
    fn rules_are_about_the_properties_of_one_bundle() {
        check("properties.exists(p, p.type == 'size' && p.value == 3)", Ok(true));
        check("properties.exists(p, p.type == 'size' && type(p.value) == double)", Ok(true));
        check("properties.all(p, p.type != 'certified')", Ok(true));
        check(
            "properties.exists(p, p.type == 'olm.gvk' \
             && p.value == {'group': 'g', 'version': 'v1', 'kind': 'K'})",
            Ok(true),
        );
        check(
            "properties.exists(p, p.type == 'olm.package' \
             && semver_compare(p.value.version, '1.2') >= 0)",
            Ok(true),
        );
    }

    #[test]
    fn what_cannot_be_evaluated_does_not_hold() {
        check("properties[9].type == 'x'", Ok(false));
        check("semver_compare(properties[2].value, 'x') == 0", Ok(false));
        let bomb = "properties.all(a, properties.all(b, properties.all(c, properties.all(d, \
                    properties.all(e, properties.all(f, properties.all(g, properties.all(h, \
                    properties.all(i, properties.all(j, properties.all(k, properties.all(l, \
                    a.type != 'no')))))))))))) ";
        check(bomb, Ok(false));
    }

    #[test]
    fn what_all_rules_cost_together_is_bounded() {
        let property = Property { kind: "size".to_owned(), value: json!(3) };
        let candidates = [std::slice::from_ref(&property); 1_000];
        let mut left = 1_000;
        let rule = "properties.exists(p, p.value == 3)";
        let first = Cel.evaluate(rule, &candidates[..10], &mut left);
        assert_eq!(first, Ok(vec![true; 10]));
        let spent = 1_000 - left;
        assert!((20..1_000).contains(&spent), "each list costs: {spent}");
        let second = Cel.evaluate(rule, &candidates, &mut left).expect_err("too many lists");
        assert!(second.contains("all bundles together cost more than"), "{second}");
        assert_eq!(left, 0);
        Cel.evaluate("true", &[], &mut left).expect_err("nothing is left");
    }

    #[test]
    fn what_is_no_rule_is_an_error() {
        check("properties", Err("its type is"));
        check("nothing == 1", Err("undeclared reference to 'nothing'"));
        check("1 +", Err("Syntax error"));
    }
}
