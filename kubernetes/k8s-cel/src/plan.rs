//! Plans: expressions in the form in which they are evaluated.
//!
//! Upstream: github.com/google/cel-go/interpreter/interpretable.go: InterpretableV2
//! Upstream: github.com/google/cel-go/interpreter/attributes.go: Attribute
use std::sync::Arc;

use crate::Value;
use crate::library::pattern;

/// A node of a plan. Flags of entries say whether the entry is left out when its value is absent
/// (`[?item]`).
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// A value known when the expression was compiled.
    Constant(Value),
    /// A variable or another value, with its qualifiers.
    Attribute(Box<Attribute>),
    /// `a && b`
    And(Box<[Plan; 2]>),
    /// `a || b`
    Or(Box<[Plan; 2]>),
    /// A function call.
    Call(Box<CallPlan>),
    /// `optional.or(optional)`, or with the flag `optional.orValue(value)`.
    OptionalOr(Box<[Plan; 2]>, bool),
    /// `x in [...]` with a constant list.
    SetMembership(Box<Plan>, Arc<[Value]>),
    /// `[item, ...]`
    List(Vec<(Plan, bool)>),
    /// `{key: value, ...}`
    Map(Vec<(Plan, Plan, bool)>),
    /// `Name{field: value, ...}`
    Object(String, Vec<(String, Plan, bool)>),
    /// What the macros become.
    Comprehension(Box<ComprehensionPlan>),
}

/// A value and the qualifiers that lead from it to another: `object.spec.items[0]`.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) root: AttributeRoot,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Whether this is `has(...)`: the last qualifier is only tested.
    pub(crate) test_only: bool,
}

/// Where an attribute begins.
#[derive(Clone, Debug)]
pub(crate) enum AttributeRoot {
    /// The variable of this name.
    Variable(String),
    /// The value of another plan.
    Computed(Plan),
    /// `condition ? attribute : attribute`
    Conditional(Plan, Box<Attribute>, Box<Attribute>),
}

/// One field, key or index.
#[derive(Clone, Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    /// Whether it is `?.field` or `[?key]`: absence is a value.
    pub(crate) optional: bool,
    /// Whether only its presence is tested.
    pub(crate) test: bool,
}

/// The key of a qualifier.
#[derive(Clone, Debug)]
pub(crate) enum QualifierKey {
    Constant(Value),
    Computed(Attribute),
}

/// A call of a function or operator.
#[derive(Clone, Debug)]
pub(crate) struct CallPlan {
    pub(crate) function: String,
    /// The only overload that the call can mean; nothing if the values decide.
    pub(crate) overload: Option<&'static str>,
    /// The target, if there is one, and the arguments.
    pub(crate) arguments: Vec<Plan>,
    /// The pattern of `matches`, `find` and `findAll`, where it is constant.
    pub(crate) pattern: Option<pattern::ConstantPattern>,
}

/// A comprehension; fields as in [`crate::ast::Comprehension`].
#[derive(Clone, Debug)]
pub(crate) struct ComprehensionPlan {
    pub(crate) range: Plan,
    pub(crate) variable: String,
    pub(crate) second: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) start: Plan,
    pub(crate) condition: Plan,
    pub(crate) step: Plan,
    pub(crate) result: Plan,
}

impl Attribute {
    /// Adds a qualifier; to both branches of a conditional.
    pub(crate) fn add(&mut self, qualifier: &Qualifier) {
        match &mut self.root {
            AttributeRoot::Conditional(_, truthy, falsy) => {
                truthy.add(qualifier);
                falsy.add(qualifier);
            }
            AttributeRoot::Variable(_) | AttributeRoot::Computed(_) => {
                self.qualifiers.push(qualifier.clone())
            }
        }
    }
}
