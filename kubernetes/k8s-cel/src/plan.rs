//! Plans: expressions in the form in which they are evaluated.
use std::sync::Arc;

use crate::Value;
use crate::library::pattern;

/// A step of evaluation.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Constant(Value),
    Path(Box<Path>),
    And(Box<[Plan; 2]>),
    Or(Box<[Plan; 2]>),
    Call(Box<CallPlan>),
    /// `optional.or(optional)`, or with `orValue`.
    Otherwise(Box<[Plan; 2]>, bool),
    /// `x in [...]` with a constant list.
    Among(Box<Plan>, Arc<[Value]>),
    List(Vec<(Plan, bool)>),
    Map(Vec<(Plan, Plan, bool)>),
    Object(String, Vec<(String, Plan, bool)>),
    Fold(Box<FoldPlan>),
}

/// A value and the way from it to another.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) start: Start,
    pub(crate) steps: Vec<Step>,
    /// Whether this asks if the last step is possible.
    pub(crate) test_only: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Start {
    Variable(String),
    Value(Plan),
    Choice(Plan, Box<Path>, Box<Path>),
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) optional: bool,
    pub(crate) test: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Key {
    Constant(Value),
    Computed(Path),
}

#[derive(Clone, Debug)]
pub(crate) struct CallPlan {
    pub(crate) function: String,
    /// The one signature that the call can mean; nothing if the values decide.
    pub(crate) overload: Option<&'static str>,
    pub(crate) arguments: Vec<Plan>,
    /// The pattern, where it is constant.
    pub(crate) pattern: Option<pattern::Constant>,
}

#[derive(Clone, Debug)]
pub(crate) struct FoldPlan {
    pub(crate) range: Plan,
    pub(crate) variable: String,
    pub(crate) second: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) start: Plan,
    pub(crate) condition: Plan,
    pub(crate) step: Plan,
    pub(crate) result: Plan,
}

impl Path {
    /// Adds a step; of a choice, to both ways.
    pub(crate) fn add(&mut self, step: &Step) {
        match &mut self.start {
            Start::Choice(_, truthy, falsy) => {
                truthy.add(step);
                falsy.add(step);
            }
            Start::Variable(_) | Start::Value(_) => self.steps.push(step.clone()),
        }
    }
}
