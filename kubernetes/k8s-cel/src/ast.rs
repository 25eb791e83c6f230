//! The tree of an expression, with macros expanded.
//!
//! Upstream: github.com/google/cel-go/common/ast/expr.go: Expr
//! Upstream: github.com/google/cel-go/common/operators/operators.go: LogicalAnd
use crate::Value;

/// The number of an expression in its tree.
pub(crate) type ExprId = usize;

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: ExprId,
    pub(crate) kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// What stands where the text has an error.
    Unspecified,
    Literal(Value),
    Ident(String),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Item>),
    Map(Vec<Entry>),
    Struct(Box<Struct>),
    Comprehension(Box<Comprehension>),
}

/// `operand.field`, or `has(operand.field)`.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: String,
    pub(crate) test_only: bool,
}

/// `function(arguments)` or `target.function(arguments)`.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: String,
    pub(crate) target: Option<Expr>,
    pub(crate) arguments: Vec<Expr>,
}

/// An item of a list literal; `?item` is left out when it is absent.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// An entry of a map literal.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// `Name{field: value}`.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<FieldInit>,
}

#[derive(Clone, Debug)]
pub(crate) struct FieldInit {
    pub(crate) id: ExprId,
    pub(crate) name: String,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A comprehension: what `all`, `map` and the other macros become.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    /// The list or map that is iterated over.
    pub(crate) range: Expr,
    /// The name of an item, or of a key if there is a second variable.
    pub(crate) variable: String,
    /// The second variable, of two-variable comprehensions: the name of a value.
    pub(crate) second: Option<String>,
    /// The name of the accumulated value.
    pub(crate) accumulator: String,
    /// The accumulator's initial value.
    pub(crate) start: Expr,
    /// Iteration ends when this is false.
    pub(crate) condition: Expr,
    /// The accumulator's value after an iteration.
    pub(crate) step: Expr,
    /// The value of the whole.
    pub(crate) result: Expr,
}

/// The name of the accumulator in the macros' comprehensions.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The range variable of comprehensions that only name a value.
pub(crate) const UNUSED: &str = "#unused";

impl Comprehension {
    /// Whether this only gives the start value a name for the result.
    pub(crate) fn is_binding(&self) -> bool {
        matches!(&self.range.kind, ExprKind::List(items) if items.is_empty())
            && matches!(self.condition.kind, ExprKind::Literal(Value::Bool(false)))
            && self.accumulator != "__result__"
    }
}

/// The names of operators as functions.
pub(crate) mod operator {
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const IN: &str = "@in";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPTIONAL_INDEX: &str = "_[?_]";
    pub(crate) const OPTIONAL_SELECT: &str = "_?._";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
}

impl Expr {
    /// The expressions that this one is made of, in the order of the text.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
            ExprKind::Select(select) => vec![&select.operand],
            ExprKind::Call(call) => call.target.iter().chain(&call.arguments).collect(),
            ExprKind::List(items) => items.iter().map(|item| &item.value).collect(),
            ExprKind::Map(entries) => {
                entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect()
            }
            ExprKind::Struct(object) => object.fields.iter().map(|field| &field.value).collect(),
            ExprKind::Comprehension(comprehension) => {
                vec![
                    &comprehension.range,
                    &comprehension.start,
                    &comprehension.condition,
                    &comprehension.step,
                    &comprehension.result,
                ]
            }
        }
    }
}
