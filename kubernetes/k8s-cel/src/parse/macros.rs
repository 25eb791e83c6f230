//! Macros: calls that become comprehensions.
//!
//! Upstream: github.com/google/cel-go/parser/macro.go: AllMacros
//! Upstream: github.com/google/cel-go/cel/library.go: optMap
//! Upstream: github.com/google/cel-go/ext/comprehensions.go: TwoVarComprehensions
//! Upstream: github.com/google/cel-go/ext/lists.go: sortByMacro
use super::SourceInfo;
use crate::Value;
use crate::ast::{
    ACCUMULATOR, Call, Comprehension, Entry, Expr, ExprId, ExprKind, FieldInit, Item, Select,
    Struct, UNUSED, operator,
};

/// The name that `sortBy` gives to the list.
const SORT_INPUT: &str = "@__sortBy_input__";

/// What became of a call.
pub(super) enum Expansion {
    /// It was a macro.
    Expanded(Box<Expr>),
    /// It was none: target and arguments come back.
    Plain(Option<Expr>, Vec<Expr>),
    /// It was a macro, used wrongly: where, and how.
    Wrong(ExprId, String),
}

type Expanded = Result<Expr, (ExprId, String)>;

/// Expands a call if it is a macro. New nodes lie where the call does.
pub(super) fn expand(
    source_info: &mut SourceInfo,
    id: ExprId,
    function: &str,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Expansion {
    let mut maker = MacroExpander { offset: source_info.offset(id), source_info };
    let expanded = match (function, target, arguments.len()) {
        ("has", None, 1) => maker.has(arguments),
        ("all", Some(range), 2 | 3) => maker.quantifier(Quantifier::All, range, arguments),
        ("exists", Some(range), 2 | 3) => maker.quantifier(Quantifier::Exists, range, arguments),
        ("exists_one", Some(range), 2 | 3) | ("existsOne", Some(range), 3) => {
            maker.quantifier(Quantifier::ExistsOne, range, arguments)
        }
        ("map", Some(range), 2 | 3) => maker.map(range, arguments),
        ("filter", Some(range), 2) => maker.filter(range, arguments),
        ("optMap", Some(value), 2) => maker.optional_map(value, arguments, false),
        ("optFlatMap", Some(value), 2) => maker.optional_map(value, arguments, true),
        ("transformList", Some(range), 3 | 4) => maker.transform(Target::List, range, arguments),
        ("transformMap", Some(range), 3 | 4) => maker.transform(Target::Map, range, arguments),
        ("transformMapEntry", Some(range), 3 | 4) => {
            maker.transform(Target::Entry, range, arguments)
        }
        ("sortBy", Some(list), 2) => maker.sort_by(list, arguments),
        (_, target, _) => return Expansion::Plain(target, arguments),
    };
    match expanded {
        Ok(expr) => Expansion::Expanded(Box::new(expr)),
        Err((at, message)) => Expansion::Wrong(at, message),
    }
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

#[derive(Clone, Copy)]
enum Target {
    List,
    Map,
    Entry,
}

struct MacroExpander<'a> {
    source_info: &'a mut SourceInfo,
    offset: usize,
}

impl MacroExpander<'_> {
    fn node(&mut self, kind: ExprKind) -> Expr {
        Expr { id: self.source_info.add(self.offset), kind }
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(ExprKind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn literal(&mut self, value: impl Into<Value>) -> Expr {
        self.node(ExprKind::Literal(value.into()))
    }

    fn list(&mut self, items: Vec<Expr>) -> Expr {
        let items = items.into_iter().map(|value| Item { value, optional: false }).collect();
        self.node(ExprKind::List(items))
    }

    fn call(&mut self, function: &str, arguments: Vec<Expr>) -> Expr {
        let call = Call { function: function.to_owned(), target: None, arguments };
        self.node(ExprKind::Call(Box::new(call)))
    }

    fn method(&mut self, function: &str, target: Expr, arguments: Vec<Expr>) -> Expr {
        let call = Call { function: function.to_owned(), target: Some(target), arguments };
        self.node(ExprKind::Call(Box::new(call)))
    }

    fn comprehension(&mut self, comprehension: Comprehension) -> Expr {
        self.node(ExprKind::Comprehension(Box::new(comprehension)))
    }

    fn has(&mut self, mut arguments: Vec<Expr>) -> Expanded {
        let argument = arguments.remove(0);
        match argument.kind {
            ExprKind::Select(select) => {
                let select = Select { test_only: true, ..*select };
                Ok(self.node(ExprKind::Select(Box::new(select))))
            }
            _ => Err((argument.id, "invalid argument to has() macro".to_owned())),
        }
    }

    fn quantifier(&mut self, kind: Quantifier, range: Expr, arguments: Vec<Expr>) -> Expanded {
        let (variable, second, mut rest) =
            variables(arguments, 1, "argument must be a simple name")?;
        let predicate = rest.remove(0);
        let (start, condition, step, result);
        match kind {
            Quantifier::All => {
                start = self.literal(true);
                let so_far = self.accumulator();
                condition = self.call(operator::NOT_STRICTLY_FALSE, vec![so_far]);
                let so_far = self.accumulator();
                step = self.call(operator::AND, vec![so_far, predicate]);
                result = self.accumulator();
            }
            Quantifier::Exists => {
                start = self.literal(false);
                let so_far = self.accumulator();
                let none = self.call(operator::NOT, vec![so_far]);
                condition = self.call(operator::NOT_STRICTLY_FALSE, vec![none]);
                let so_far = self.accumulator();
                step = self.call(operator::OR, vec![so_far, predicate]);
                result = self.accumulator();
            }
            Quantifier::ExistsOne => {
                start = self.literal(0_i64);
                condition = self.literal(true);
                let (so_far, one) = (self.accumulator(), self.literal(1_i64));
                let more = self.call(operator::ADD, vec![so_far, one]);
                let so_far = self.accumulator();
                step = self.call(operator::CONDITIONAL, vec![predicate, more, so_far]);
                let (so_far, one) = (self.accumulator(), self.literal(1_i64));
                result = self.call(operator::EQUALS, vec![so_far, one]);
            }
        }
        let accumulator = ACCUMULATOR.to_owned();
        Ok(self.comprehension(Comprehension {
            range,
            variable,
            second,
            accumulator,
            start,
            condition,
            step,
            result,
        }))
    }

    fn map(&mut self, range: Expr, arguments: Vec<Expr>) -> Expanded {
        let (variable, mut rest) = variable(arguments, "argument is not an identifier")?;
        let transform = rest.pop().expect("map has two or three arguments");
        let start = self.list(Vec::new());
        let condition = self.literal(true);
        let step = self.append(transform, rest.pop());
        let result = self.accumulator();
        let accumulator = ACCUMULATOR.to_owned();
        let second = None;
        Ok(self.comprehension(Comprehension {
            range,
            variable,
            second,
            accumulator,
            start,
            condition,
            step,
            result,
        }))
    }

    /// `@result + [item]`, if the filter lets it.
    fn append(&mut self, item: Expr, filter: Option<Expr>) -> Expr {
        let so_far = self.accumulator();
        let item = self.list(vec![item]);
        let step = self.call(operator::ADD, vec![so_far, item]);
        self.filtered(step, filter)
    }

    fn filtered(&mut self, step: Expr, filter: Option<Expr>) -> Expr {
        let Some(filter) = filter else { return step };
        let so_far = self.accumulator();
        self.call(operator::CONDITIONAL, vec![filter, step, so_far])
    }

    fn filter(&mut self, range: Expr, mut arguments: Vec<Expr>) -> Expanded {
        let item = arguments[0].clone();
        let filter = arguments.pop();
        let (variable, _) = variable(arguments, "argument is not an identifier")?;
        let start = self.list(Vec::new());
        let condition = self.literal(true);
        let step = self.append(item, filter);
        let result = self.accumulator();
        let accumulator = ACCUMULATOR.to_owned();
        let second = None;
        Ok(self.comprehension(Comprehension {
            range,
            variable,
            second,
            accumulator,
            start,
            condition,
            step,
            result,
        }))
    }

    fn transform(&mut self, target: Target, range: Expr, arguments: Vec<Expr>) -> Expanded {
        let (name, second, mut rest) = variables(arguments, 2, "argument must be a simple name")?;
        let transform = rest.pop().expect("transforms have three or four arguments");
        let filter = rest.pop();
        let start = match target {
            Target::List => self.list(Vec::new()),
            Target::Map | Target::Entry => self.node(ExprKind::Map(Vec::new())),
        };
        let condition = self.literal(true);
        let step = match target {
            Target::List => self.append(transform, filter),
            Target::Map => {
                let (so_far, key) = (self.accumulator(), self.ident(&name));
                let step = self.call(operator::MAP_INSERT, vec![so_far, key, transform]);
                self.filtered(step, filter)
            }
            Target::Entry => {
                let so_far = self.accumulator();
                let step = self.call(operator::MAP_INSERT, vec![so_far, transform]);
                self.filtered(step, filter)
            }
        };
        let result = self.accumulator();
        let (variable, accumulator) = (name, ACCUMULATOR.to_owned());
        Ok(self.comprehension(Comprehension {
            range,
            variable,
            second,
            accumulator,
            start,
            condition,
            step,
            result,
        }))
    }

    /// Gives a value a name within an expression.
    fn binding(&mut self, name: &str, start: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(false);
        let step = self.ident(name);
        let (variable, accumulator) = (UNUSED.to_owned(), name.to_owned());
        let second = None;
        self.comprehension(Comprehension {
            range,
            variable,
            second,
            accumulator,
            start,
            condition,
            step,
            result,
        })
    }

    fn optional_map(&mut self, target: Expr, mut arguments: Vec<Expr>, flat: bool) -> Expanded {
        let transform = arguments.pop().expect("both have two arguments");
        let name = arguments.pop().expect("both have two arguments");
        let ExprKind::Ident(variable) = name.kind else {
            let function = if flat { "optFlatMap" } else { "optMap" };
            let message = format!("{function}() variable name must be a simple identifier");
            return Err((name.id, message));
        };
        let copy = self.copy(&target);
        let present = self.method("hasValue", target, Vec::new());
        let value = self.method("value", copy, Vec::new());
        let bound = self.binding(&variable, value, transform);
        let mapped = if flat { bound } else { self.call("optional.of", vec![bound]) };
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(operator::CONDITIONAL, vec![present, mapped, none]))
    }

    fn sort_by(&mut self, target: Expr, arguments: Vec<Expr>) -> Expanded {
        let sortable = matches!(
            target.kind,
            ExprKind::List(_)
                | ExprKind::Select(_)
                | ExprKind::Ident(_)
                | ExprKind::Comprehension(_)
                | ExprKind::Call(_)
        );
        if !sortable {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call \
                           or select expression";
            return Err((target.id, message.to_owned()));
        }
        let range = self.ident(SORT_INPUT);
        let keys = self.map(range, arguments)?;
        let input = self.ident(SORT_INPUT);
        let sorted = self.method("@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.binding(SORT_INPUT, target, sorted))
    }

    /// The same tree with new ids.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let id = self.source_info.add(self.source_info.offset(expr.id));
        let kind = match &expr.kind {
            ExprKind::Unspecified => ExprKind::Unspecified,
            ExprKind::Literal(value) => ExprKind::Literal(value.clone()),
            ExprKind::Ident(name) => ExprKind::Ident(name.clone()),
            ExprKind::Select(select) => ExprKind::Select(Box::new(Select {
                operand: self.copy(&select.operand),
                field: select.field.clone(),
                test_only: select.test_only,
            })),
            ExprKind::Call(call) => ExprKind::Call(Box::new(Call {
                function: call.function.clone(),
                arguments: call.arguments.iter().map(|argument| self.copy(argument)).collect(),
                target: call.target.as_ref().map(|target| self.copy(target)),
            })),
            ExprKind::List(items) => ExprKind::List(
                items
                    .iter()
                    .map(|item| Item { value: self.copy(&item.value), optional: item.optional })
                    .collect(),
            ),
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|entry| Entry {
                        key: self.copy(&entry.key),
                        value: self.copy(&entry.value),
                        optional: entry.optional,
                    })
                    .collect(),
            ),
            ExprKind::Struct(object) => ExprKind::Struct(Box::new(Struct {
                name: object.name.clone(),
                fields: object
                    .fields
                    .iter()
                    .map(|field| FieldInit {
                        id: self.source_info.add(self.offset),
                        name: field.name.clone(),
                        value: self.copy(&field.value),
                        optional: field.optional,
                    })
                    .collect(),
            })),
            ExprKind::Comprehension(comprehension) => {
                ExprKind::Comprehension(Box::new(Comprehension {
                    range: self.copy(&comprehension.range),
                    variable: comprehension.variable.clone(),
                    second: comprehension.second.clone(),
                    accumulator: comprehension.accumulator.clone(),
                    start: self.copy(&comprehension.start),
                    condition: self.copy(&comprehension.condition),
                    step: self.copy(&comprehension.step),
                    result: self.copy(&comprehension.result),
                }))
            }
        };
        Expr { id, kind }
    }
}

/// The first argument as the name of a variable, and the others.
fn variable(
    mut arguments: Vec<Expr>,
    otherwise: &str,
) -> Result<(String, Vec<Expr>), (ExprId, String)> {
    let rest = arguments.split_off(1);
    let first = arguments.remove(0);
    match first.kind {
        ExprKind::Ident(name) if name != ACCUMULATOR && name != "__result__" => Ok((name, rest)),
        ExprKind::Ident(_) => {
            Err((first.id, "iteration variable overwrites accumulator variable".to_owned()))
        }
        _ => Err((first.id, otherwise.to_owned())),
    }
}

/// One name or two, and the other arguments.
type Variables = (String, Option<String>, Vec<Expr>);

/// One variable if `others` arguments remain then, else two.
fn variables(
    arguments: Vec<Expr>,
    others: usize,
    otherwise: &str,
) -> Result<Variables, (ExprId, String)> {
    let two = arguments.len() > 2 || others > 1;
    let (name, rest) = variable(arguments, otherwise)?;
    if !two {
        return Ok((name, None, rest));
    }
    let second_id = rest[0].id;
    let (second, rest) = variable(rest, otherwise)?;
    if name == second {
        return Err((second_id, format!("duplicate variable name: {name}")));
    }
    Ok((name, Some(second), rest))
}
