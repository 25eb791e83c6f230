//! Filters of EventActions: expressions that are true for the changes that make Actions.

use k8s_cel::{
    Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, EvaluationError, Program, Type, Value,
};
use serde_json::Value as Json;

use super::content::Change;

/// The maximum length of what is wrong with a filter, in bytes.
const MESSAGE_LENGTH_MAX: usize = 1024;

/// A filter that compiles, and what it may still cost.
pub(super) struct Filter {
    program: Program,
    /// All changes that are judged at once share what Kubernetes grants one expression.
    budget: Budget,
}

impl Filter {
    /// Compiles a filter; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// When it does not compile, or its value is not true or false.
    pub(super) fn compile(text: &str) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let environment = Environment::for_stored_expressions()
            .with_variable("object", Type::Dyn)
            .with_variable("event", Type::String)
            .with_variable("old", Type::String)
            .with_variable("new", Type::String);
        let program = environment.compile(text).map_err(|errors| errors.to_string())?;
        if *program.result_type() != Type::Bool {
            return Err(format!("its type is {}, not bool", program.result_type()));
        }
        Ok(Some(Self { program, budget: Budget::new(EXPRESSION_COST_LIMIT) }))
    }

    /// Returns whether it is true for a change of an object; `None` if the evaluations before have left too little
    /// of the budget.
    ///
    /// # Errors
    ///
    /// When it cannot be evaluated.
    pub(super) fn holds(
        &mut self,
        change: &Change<'_>,
        object: &Json,
    ) -> Result<Option<bool>, String> {
        let is_first = self.budget.spent() == 0;
        let bindings = Bindings::new()
            .with("object", Value::from_json(object))
            .with("event", Value::string(change.event.as_str()))
            .with("old", Value::string(change.old))
            .with("new", Value::string(&*change.new));
        match self.program.evaluate(&bindings, &mut self.budget) {
            Ok(Value::Bool(holds)) => Ok(Some(holds)),
            Err(EvaluationError::OutOfBudget) if !is_first => Ok(None),
            Ok(_) => Err("its value is not true or false".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns what is wrong with a filter, as a sentence about `spec.trigger.filter`; `None` if nothing is.
pub fn filter_problem(text: &str) -> Option<String> {
    Filter::compile(text).err().map(|why| problem(&why))
}

/// Returns the sentence about a filter with what is wrong with it.
pub(super) fn problem(why: &str) -> String {
    let why = crate::actions::cut(why, MESSAGE_LENGTH_MAX);
    format!("spec.trigger.filter does not compile: {why}")
}

#[cfg(test)]
mod tests {
    //! Filters, and for which changes they hold.

    use plimsoll_api::olm::action::EventType;
    use serde_json::json;

    use super::*;

    /// Checks a filter for the installation of version 2.0.0 of an Operator after 1.9.0.
    #[track_caller]
    fn check(text: &str, expected: Result<bool, &str>) {
        let (name, event) = ("foo", EventType::Installed);
        let change = Change { name, event, old: "1.9.0", new: "2.0.0".into(), chain: &[] };
        let object = json!({ "metadata": { "name": "foo" }, "spec": { "version": "^2" } });
        let filter = Filter::compile(text).map_err(|why| problem(&why));
        let found = filter.and_then(|it| it.expect("a filter").holds(&change, &object));
        let found = found.map(|it| it.expect("it is the first evaluation"));
        match (found, expected) {
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
            (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{text}"),
        }
    }

    #[test]
    fn filters_see_the_object_the_event_and_what_was_observed() {
        check("object.metadata.name == 'foo'", Ok(true));
        check("object.spec.version.startsWith('^1')", Ok(false));
        check("event == 'Installed'", Ok(true));
        check("semver(old).major() < semver(new).major()", Ok(true));
        check("object.metadata.?labels.tier.orValue('') == 'web'", Ok(false));
        check("old == '' || new.startsWith('1.')", Ok(false));
    }

    #[test]
    fn filters_that_are_no_conditions_are_refused() {
        let begin = "spec.trigger.filter does not compile: ";
        check("object.spec.version", Err(&format!("{begin}its type is dyn, not bool")));
        check("new", Err(&format!("{begin}its type is string, not bool")));
        check("object.spec.version ==", Err(&format!("{begin}ERROR: ")));
        check("plan.changes.size() < 5", Err("undeclared reference to 'plan'"));
        assert_eq!(filter_problem(""), None);
        assert_eq!(filter_problem("true"), None);
    }

    #[test]
    fn filters_that_cannot_be_evaluated_say_why() {
        check("object.spec.channel == 'stable'", Err("no such key: channel"));
        check("semver(object.spec.version).major() > 1", Err("No Major.Minor.Patch elements"));
        let numbers = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
        let mut costly = "true".to_owned();
        for variable in ["a", "b", "c", "d", "e", "f"] {
            costly = format!("{numbers}.all({variable}, {costly})");
        }
        check(&costly, Err("cost"));
    }
}
