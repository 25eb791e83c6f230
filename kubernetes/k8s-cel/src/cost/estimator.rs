//! The walk over a tree that adds costs up, with the paths and sizes of what it has passed.
//!
//! Upstream: github.com/google/cel-go/checker/cost.go: coster
mod functions;

use std::collections::BTreeMap;

use super::{CostEstimate, SizeEstimate, SizeEstimator};
use crate::Value;
use crate::ast::{ACCUMULATOR, Call, Comprehension, Expr, ExprId, ExprKind};
use crate::check::Checked;
use crate::types::Type;
use functions::CostNode;

const ONE: CostEstimate = CostEstimate::fixed(1);
const LIST_COST: CostEstimate = CostEstimate::fixed(10);
const MAP_COST: CostEstimate = CostEstimate::fixed(30);
const OBJECT_COST: CostEstimate = CostEstimate::fixed(40);

/// The sizes of the keys and values within a list or a map.
#[derive(Clone, Copy, Debug)]
struct EntrySize {
    is_list: bool,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl EntrySize {
    fn union(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A variable of a comprehension.
struct LocalVariable {
    name: String,
    path: Vec<String>,
    size: Option<SizeEstimate>,
    entries: Option<EntrySize>,
}

pub(super) struct CostEstimator<'a> {
    checked: &'a Checked,
    sizes: &'a dyn SizeEstimator,
    paths: BTreeMap<ExprId, Vec<String>>,
    computed: BTreeMap<ExprId, SizeEstimate>,
    entries: BTreeMap<ExprId, EntrySize>,
    locals: Vec<LocalVariable>,
}

impl<'a> CostEstimator<'a> {
    pub(super) fn new(checked: &'a Checked, sizes: &'a dyn SizeEstimator) -> Self {
        Self {
            checked,
            sizes,
            paths: BTreeMap::new(),
            computed: BTreeMap::new(),
            entries: BTreeMap::new(),
            locals: Vec::new(),
        }
    }

    pub(super) fn type_of(&self, expr: &Expr) -> &'a Type {
        self.checked.type_of(expr)
    }

    pub(super) fn cost(&mut self, expr: &Expr) -> CostEstimate {
        match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) => CostEstimate::default(),
            ExprKind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![name.clone()],
                };
                self.paths.insert(expr.id, path);
                ONE
            }
            ExprKind::Select(select) => {
                let sum = self.cost(&select.operand);
                if select.test_only {
                    return sum;
                }
                let follows = matches!(
                    self.type_of(&select.operand),
                    Type::Map(..) | Type::Object(_) | Type::Opaque(_) | Type::Parameter(_)
                );
                self.extend_path(expr, &select.operand, &select.field);
                if follows { sum.plus(ONE) } else { sum }
            }
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(items) => {
                let mut sum = CostEstimate::default();
                let mut size = SizeEstimate { min: u64::MAX, max: 0 };
                if items.is_empty() {
                    size.min = 0;
                }
                for item in items {
                    sum = sum.plus(self.cost(&item.value));
                    size = size.union(self.size_or_unknown(&item.value));
                }
                let entry = EntrySize { is_list: true, key: SizeEstimate::fixed(1), value: size };
                self.entries.insert(expr.id, entry);
                sum.plus(LIST_COST)
            }
            ExprKind::Map(pairs) => {
                let mut sum = CostEstimate::default();
                let least = if pairs.is_empty() { 0 } else { u64::MAX };
                let mut key = SizeEstimate { min: least, max: 0 };
                let mut value = key;
                for pair in pairs {
                    sum = sum.plus(self.cost(&pair.key)).plus(self.cost(&pair.value));
                    key = key.union(self.size_or_unknown(&pair.key));
                    value = value.union(self.size_or_unknown(&pair.value));
                }
                self.entries.insert(expr.id, EntrySize { is_list: false, key, value });
                sum.plus(MAP_COST)
            }
            ExprKind::Struct(object) => object
                .fields
                .iter()
                .fold(OBJECT_COST, |sum, field| sum.plus(self.cost(&field.value))),
            ExprKind::Comprehension(comprehension) if comprehension.is_binding() => {
                self.binding(expr, comprehension)
            }
            ExprKind::Comprehension(comprehension) => self.comprehension(expr, comprehension),
        }
    }

    fn local(&self, name: &str) -> Option<&LocalVariable> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Vec<String> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn extend_path(&mut self, expr: &Expr, operand: &Expr, part: &str) {
        let mut path = self.path(operand);
        path.push(part.to_owned());
        self.paths.insert(expr.id, path);
    }

    // Upstream: github.com/google/cel-go/checker/cost.go: costCall
    fn call(&mut self, expr: &Expr, call: &Call) -> CostEstimate {
        if let ("dyn", [argument]) = (call.function.as_str(), call.arguments.as_slice()) {
            let cost = self.cost(argument);
            self.copy_sizes(expr, argument);
            return ONE.plus(cost);
        }
        let costs: Vec<CostEstimate> =
            call.arguments.iter().map(|argument| self.cost(argument)).collect();
        let arguments: Vec<CostNode<'_>> =
            call.arguments.iter().map(|argument| self.node(argument)).collect();
        let Some(overloads) = self.checked.overloads.get(&expr.id) else {
            return CostEstimate::default();
        };
        let mut sum = CostEstimate::default();
        let mut target = None;
        if let Some(receiver) = &call.target {
            sum = self.cost(receiver);
            target = Some(self.node(receiver));
        }
        let mut most = CostEstimate { min: u64::MAX, max: 0 };
        let mut result: Option<SizeEstimate> = None;
        for overload in overloads {
            let called = functions::OverloadCall {
                function: &call.function,
                overload,
                target: target.as_ref(),
                arguments: &arguments,
                costs: &costs,
            };
            let (cost, size) = functions::estimate(self, expr, &called);
            most = most.union(cost);
            result = match (result, size) {
                (Some(before), Some(size)) => Some(before.union(size)),
                (before, size) => before.or(size),
            };
            if let ("index_list" | "index_map", [operand, ..]) =
                (*overload, call.arguments.as_slice())
            {
                result = self.entry_size(operand).map(|entry| entry.value);
                let part = if *overload == "index_list" { "@items" } else { "@values" };
                self.extend_path(expr, operand, part);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        self.set_size(expr, result);
        sum.plus(most)
    }

    // Upstream: github.com/google/cel-go/checker/cost.go: costBind
    fn binding(&mut self, expr: &Expr, comprehension: &Comprehension) -> CostEstimate {
        let mut sum = self.cost(&comprehension.range).plus(self.cost(&comprehension.start));
        self.push_binding(&comprehension.accumulator, &comprehension.start);
        sum = sum.plus(self.cost(&comprehension.result));
        self.locals.pop();
        self.copy_sizes(expr, &comprehension.result);
        sum
    }

    fn push_binding(&mut self, name: &str, start: &Expr) {
        let local = LocalVariable {
            name: name.to_owned(),
            path: self.path(start),
            size: self.size(start),
            entries: self.entry_size(start),
        };
        self.locals.push(local);
    }

    // Upstream: github.com/google/cel-go/checker/cost.go: costComprehension
    fn comprehension(&mut self, expr: &Expr, comprehension: &Comprehension) -> CostEstimate {
        let mut sum = self.cost(&comprehension.range).plus(self.cost(&comprehension.start));
        self.push_binding(&comprehension.accumulator, &comprehension.start);
        let depth = self.locals.len();
        match &comprehension.second {
            Some(second) => {
                self.push_range(&comprehension.variable, &comprehension.range, RangePart::Key);
                self.push_range(second, &comprehension.range, RangePart::Value);
            }
            None => {
                self.push_range(&comprehension.variable, &comprehension.range, RangePart::Single)
            }
        }
        let step = self.cost(&comprehension.condition).plus(self.cost(&comprehension.step));
        self.locals.truncate(depth);
        sum = sum.plus(self.cost(&comprehension.result));
        self.locals.pop();
        let count = self.size_or_unknown(&comprehension.range);
        sum = sum.plus(count.times_cost(step));
        match &comprehension.start.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&comprehension.start);
                self.set_size(expr, size);
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.set_size(expr, Some(count));
                if let Some(entry) = self.entry_size(&comprehension.step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    // Upstream: github.com/google/cel-go/checker/cost.go: pushIterSingle
    fn push_range(&mut self, name: &str, range: &Expr, part: RangePart) {
        let entry = self.entry_size(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.type_of(range), Type::List(_)),
        };
        let takes_value = match part {
            RangePart::Key => false,
            RangePart::Value => true,
            RangePart::Single => is_list,
        };
        let step = match (takes_value, is_list) {
            (true, true) => "@items",
            (true, false) => "@values",
            (false, true) => "@indices",
            (false, false) => "@keys",
        };
        let mut path = self.path(range);
        path.push(step.to_owned());
        let size = entry.map(|entry| if takes_value { entry.value } else { entry.key });
        self.locals.push(LocalVariable { name: name.to_owned(), path, size, entries: None });
    }

    /// An argument, as the functions' estimates see it.
    fn node<'e>(&mut self, expr: &'e Expr) -> CostNode<'e> {
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| first == ACCUMULATOR || first == "__result__") {
            path.clear();
        }
        let (of, size) = (self.type_of(expr).clone(), self.size(expr));
        CostNode { expr, path, of, size }
    }

    fn set_size(&mut self, expr: &Expr, size: Option<SizeEstimate>) {
        if let Some(size) = size {
            self.computed.insert(expr.id, size);
        }
    }

    fn set_entries(&mut self, expr: &Expr, left: &Expr, right: &Expr) {
        if let (Some(left), Some(right)) = (self.entry_size(left), self.entry_size(right)) {
            self.entries.insert(expr.id, left.union(right));
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        if let Some(entry) = self.entry_size(from) {
            self.entries.insert(to.id, entry);
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> SizeEstimate {
        self.size(expr).unwrap_or(SizeEstimate::UNKNOWN)
    }

    // Upstream: github.com/google/cel-go/checker/cost.go: computeSize
    fn size(&mut self, expr: &Expr) -> Option<SizeEstimate> {
        if let Some(size) = self.computed.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(SizeEstimate::fixed(size));
        }
        let of = self.type_of(expr);
        if let Some(size) = self.sizes.size(&self.path(expr), of) {
            self.computed.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(of) {
            return Some(SizeEstimate::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    // Upstream: github.com/google/cel-go/checker/cost.go: computeEntrySize
    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }
}

/// What a variable of a comprehension takes from its range.
#[derive(Clone, Copy)]
enum RangePart {
    Key,
    Value,
    Single,
}

fn literal_size(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Literal(value) => match value {
            Value::String(_) | Value::Bytes(_) => value.size(),
            _ => Some(1),
        },
        ExprKind::List(items) => Some(items.len() as u64),
        ExprKind::Map(entries) => Some(entries.len() as u64),
        _ => None,
    }
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
