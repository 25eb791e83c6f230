//! The checker: what type each part of an expression has, and which functions calls may mean.
//!
//! Upstream: github.com/google/cel-go/checker/checker.go: Check
mod literals;
#[cfg(test)]
mod tests;
mod unify;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::CompileErrors;
use crate::ast::{Call, Comprehension, Expr, ExprId, ExprKind, Struct, operator};
use crate::declarations::Declarations;
use crate::error::CompileError;
use crate::functions::{OnDemand, Overload, overloads};
use crate::parse::{Parsed, SourceInfo};
use crate::types::Type;
use unify::{Mapping, instantiate, is_dyn_or_error, most_general};

/// An expression with the types of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) root: Expr,
    /// Types, by the ids of expressions.
    pub(crate) types: Vec<Type>,
    /// What calls may mean, by the ids of expressions.
    pub(crate) overloads: BTreeMap<ExprId, Vec<&'static str>>,
    /// The identifiers that name a type.
    pub(crate) type_names: BTreeMap<ExprId, Type>,
}

impl Checked {
    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        self.types.get(expr.id).unwrap_or(&Type::Error)
    }
}

/// Checks a parsed expression.
pub(crate) fn check(
    declarations: &Declarations,
    source: &str,
    parsed: Parsed,
) -> Result<Checked, CompileErrors> {
    let Parsed { mut root, source_info } = parsed;
    let mut checker = Checker {
        declarations,
        types: vec![Type::Error; source_info.count()],
        source_info,
        mapping: Mapping::default(),
        overloads: BTreeMap::new(),
        type_names: BTreeMap::new(),
        scopes: Vec::new(),
        errors: Vec::new(),
    };
    checker.expression(&mut root);
    let types = checker.types.iter().map(|of| checker.mapping.substitute(of, true)).collect();
    let Checker { overloads, type_names, mut errors, source_info, .. } = checker;
    let checked = Checked { root, types, overloads, type_names };
    if errors.is_empty() {
        errors = literals::literal_errors(&checked, &source_info);
    }
    if errors.is_empty() { Ok(checked) } else { Err(CompileErrors::new(source, errors)) }
}

/// A variable or a type that an identifier names.
struct ResolvedName {
    name: String,
    of: Type,
    is_type: bool,
}

struct Checker<'a> {
    declarations: &'a Declarations,
    source_info: SourceInfo,
    types: Vec<Type>,
    mapping: Mapping,
    overloads: BTreeMap<ExprId, Vec<&'static str>>,
    type_names: BTreeMap<ExprId, Type>,
    /// The variables of comprehensions around the current expression, innermost last.
    scopes: Vec<(String, Type)>,
    errors: Vec<CompileError>,
}

impl Checker<'_> {
    fn error(&mut self, id: ExprId, message: impl Into<String>) {
        let error = self.source_info.error(id, message);
        self.errors.push(error);
    }

    fn set(&mut self, expr: &Expr, of: Type) {
        self.types[expr.id] = of;
    }

    fn get(&self, expr: &Expr) -> Type {
        self.types[expr.id].clone()
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        self.error(id, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.error(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn expression(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let of = match &mut expr.kind {
            ExprKind::Unspecified => Type::Error,
            ExprKind::Literal(value) => value.type_of(),
            ExprKind::Ident(_) => return self.ident(expr),
            ExprKind::Select(_) => return self.select(expr),
            ExprKind::Call(_) => return self.call(expr),
            ExprKind::List(items) => {
                let mut element = None;
                for item in items {
                    self.expression(&mut item.value);
                    let mut of = self.get(&item.value);
                    if item.optional {
                        of = self.unwrapped(&item.value, of);
                    }
                    element = Some(self.join(item.value.id, element, of));
                }
                Type::list(element.unwrap_or_else(|| self.mapping.fresh()))
            }
            ExprKind::Map(entries) => {
                let mut both = None;
                for entry in entries {
                    self.expression(&mut entry.key);
                    let (key, value) = both.map_or((None, None), |(k, v)| (Some(k), Some(v)));
                    let of = self.get(&entry.key);
                    let key = self.join(entry.key.id, key, of);
                    self.expression(&mut entry.value);
                    let mut of = self.get(&entry.value);
                    if entry.optional {
                        of = self.unwrapped(&entry.value, of);
                    }
                    both = Some((key, self.join(entry.value.id, value, of)));
                }
                let (key, value) =
                    both.unwrap_or_else(|| (self.mapping.fresh(), self.mapping.fresh()));
                Type::map(key, value)
            }
            ExprKind::Struct(object) => self.object(id, object),
            ExprKind::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        self.types[id] = of;
    }

    /// The type within an optional; anything else in its place is an error.
    fn unwrapped(&mut self, expr: &Expr, of: Type) -> Type {
        match of {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn => of,
            other => {
                self.mismatch(expr.id, &Type::optional(other.clone()), &other);
                other
            }
        }
    }

    /// The type of a literal's parts, after one more of them.
    fn join(&mut self, id: ExprId, before: Option<Type>, current: Type) -> Type {
        let Some(before) = before else { return current };
        if self.mapping.assign(&before, &current) {
            return most_general(&before, &current).clone();
        }
        let _ = id;
        Type::Dyn
    }

    /// The variable or type with a name; local names come first unless a dot leads.
    fn resolve(&self, name: &str) -> Option<ResolvedName> {
        let plain = name.strip_prefix('.');
        let local = |wanted: &str| self.scopes.iter().rev().find(|(name, _)| name == wanted);
        if plain.is_none()
            && let Some((name, of)) = local(name)
        {
            return Some(ResolvedName { name: name.clone(), of: of.clone(), is_type: false });
        }
        let name = plain.unwrap_or(name);
        // A global name that a local one hides is marked by its dot.
        let shown = if local(name).is_some() { format!(".{name}") } else { name.to_owned() };
        self.global(name).map(|(of, is_type)| ResolvedName { name: shown, of, is_type })
    }

    fn global(&self, name: &str) -> Option<(Type, bool)> {
        if let Some(of) = self.declarations.variables.get(name) {
            return Some((of.clone(), false));
        }
        named_type(name).map(|of| (of, true))
    }

    fn ident(&mut self, expr: &mut Expr) {
        let ExprKind::Ident(name) = &expr.kind else { return };
        match self.resolve(name) {
            Some(found) => self.becomes(expr, found),
            None => {
                let name = name.clone();
                self.undeclared(expr.id, &name);
                self.set(expr, Type::Error);
            }
        }
    }

    fn becomes(&mut self, expr: &mut Expr, found: ResolvedName) {
        let ResolvedName { name, of, is_type } = found;
        let of = if is_type {
            self.type_names.insert(expr.id, of.clone());
            Type::Type(Some(Arc::new(of)))
        } else {
            of
        };
        expr.kind = ExprKind::Ident(name);
        self.set(expr, of);
    }

    fn select(&mut self, expr: &mut Expr) {
        if let Some(path) = qualified(expr) {
            let first = path.split('.').find(|part| !part.is_empty()).unwrap_or_default();
            let is_local = self.scopes.iter().any(|(name, _)| name == first);
            if (!is_local || path.starts_with('.'))
                && let Some(found) = self.resolve(&path)
            {
                return self.becomes(expr, found);
            }
        }
        let id = expr.id;
        let ExprKind::Select(select) = &mut expr.kind else { return };
        let field = select.field.clone();
        let test_only = select.test_only;
        let of = self.field(id, &mut select.operand, &field, false);
        let of = if test_only { Type::Bool } else { self.mapping.substitute(&of, false) };
        self.types[id] = of;
    }

    /// The type of `operand.field`.
    fn field(&mut self, id: ExprId, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.expression(operand);
        let operand = self.mapping.substitute(&self.get(operand), false);
        let (target, is_optional) = match operand {
            Type::Optional(inner) => ((*inner).clone(), true),
            other => (other, false),
        };
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match self.declarations.field(object, field) {
                Some(of) => of,
                None => {
                    self.error(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Opaque(name) if !name.starts_with("net.") => {
                self.error(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Parameter(_) => {
                self.mapping.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !is_dyn_or_error(other) {
                    self.error(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call(call) = &mut expr.kind else { return };
        if call.function == operator::OPTIONAL_SELECT {
            return self.optional_select(id, call);
        }
        for argument in &mut call.arguments {
            self.expression(argument);
        }
        if let Some(target) = &call.target
            && let Some(prefix) = qualified(target)
        {
            let name = format!("{}.{}", prefix.trim_start_matches('.'), call.function);
            if overloads(&name).is_some() {
                call.function = name;
                call.target = None;
            }
        }
        if call.target.is_none() && call.function.starts_with('.') {
            call.function.remove(0);
        }
        if let Some(target) = &mut call.target {
            self.expression(target);
        }
        let declared = overloads(&call.function)
            .filter(|found| found.iter().any(|overload| self.may_use(overload)));
        let of = match declared {
            Some(candidates) => self.resolve_overload(id, call, candidates),
            None => {
                let name = call.function.clone();
                self.undeclared(id, &name);
                Type::Error
            }
        };
        self.types[id] = of;
    }

    fn may_use(&self, overload: &Overload) -> bool {
        (self.declarations.stored || !overload.stored_only)
            && match overload.on_demand {
                None => true,
                Some(OnDemand::SemverCompare) => self.declarations.semver_compare,
                Some(OnDemand::PatchTypes) => self.declarations.patch_types,
            }
    }

    fn optional_select(&mut self, id: ExprId, call: &mut Call) {
        let [operand, field] = call.arguments.as_mut_slice() else { return };
        let ExprKind::Literal(crate::Value::String(name)) = &field.kind else { return };
        let name = name.to_string();
        self.types[field.id] = Type::String;
        let of = self.field(id, operand, &name, true);
        self.types[id] = self.mapping.substitute(&of, false);
        self.overloads.insert(id, vec!["select_optional_field"]);
    }

    fn resolve_overload(
        &mut self,
        id: ExprId,
        call: &Call,
        candidates: &'static [Overload],
    ) -> Type {
        let arguments: Vec<Type> =
            call.target.iter().chain(&call.arguments).map(|expr| self.get(expr)).collect();
        if call.function == operator::AND || call.function == operator::OR {
            return self.logic(id, call, &arguments, &candidates[0]);
        }
        let mut result: Option<Type> = None;
        let mut matching = Vec::new();
        for overload in candidates {
            if overload.is_method != call.target.is_some() || !self.may_use(overload) {
                continue;
            }
            let fresh: Vec<(Arc<str>, Type)> = overload
                .parameters
                .iter()
                .map(|name| (name.clone(), self.mapping.fresh()))
                .collect();
            let expected: Vec<Type> =
                overload.arguments.iter().map(|of| instantiate(of, &fresh)).collect();
            if !self.mapping.assign_all(&arguments, &expected) {
                continue;
            }
            matching.push(overload.id.as_str());
            let of = self.mapping.substitute(&instantiate(&overload.result, &fresh), false);
            result = match result {
                None => Some(of),
                Some(before) if before == Type::Dyn || before == of => Some(before),
                Some(_) => Some(Type::Dyn),
            };
        }
        let Some(result) = result else {
            let shown: Vec<String> =
                arguments.iter().map(|of| self.mapping.substitute(of, true).to_string()).collect();
            let signature = match &call.target {
                Some(_) => format!("{}.({})", shown[0], shown[1..].join(", ")),
                None => format!("({})", shown.join(", ")),
            };
            let function = &call.function;
            let message =
                format!("found no matching overload for '{function}' applied to '{signature}'");
            self.error(id, message);
            return Type::Error;
        };
        self.overloads.insert(id, matching);
        result
    }

    /// `&&` and `||` name the operand that is wrong.
    fn logic(
        &mut self,
        id: ExprId,
        call: &Call,
        arguments: &[Type],
        overload: &'static Overload,
    ) -> Type {
        let mut result = Type::Bool;
        for (expr, of) in call.arguments.iter().zip(arguments) {
            if !self.mapping.assign(of, &Type::Bool) {
                let of = of.clone();
                self.mismatch(expr.id, &Type::Bool, &of);
                result = Type::Error;
            }
        }
        if result == Type::Bool {
            self.overloads.insert(id, vec![overload.id.as_str()]);
        }
        result
    }

    fn object(&mut self, id: ExprId, object: &mut Struct) -> Type {
        let name = object.name.trim_start_matches('.').to_owned();
        let declared = self.declarations.object(&name);
        object.name.clone_from(&name);
        let Some(Type::Object(declared)) = declared else {
            self.undeclared(id, &name);
            return Type::Error;
        };
        for field in &mut object.fields {
            self.expression(&mut field.value);
            let found = self.declarations.field(&declared, &field.name);
            let mut of = self.get(&field.value);
            if field.optional {
                of = self.unwrapped(&field.value, of);
            }
            let Some(expected) = found else {
                self.error(field.id, format!("undefined field '{}'", field.name));
                continue;
            };
            if !self.mapping.assign(&expected, &of) {
                let name = &field.name;
                let message = format!(
                    "expected type of field '{name}' is '{expected}' but provided type is '{of}'"
                );
                self.error(field.id, message);
            }
        }
        Type::Object(declared)
    }

    fn comprehension(&mut self, comprehension: &mut Comprehension) -> Type {
        self.expression(&mut comprehension.range);
        self.expression(&mut comprehension.start);
        let range = self.mapping.substitute(&self.get(&comprehension.range), false);
        let accumulator = self.get(&comprehension.start);
        let two = comprehension.second.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Parameter(_) => {
                self.mapping.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.error(comprehension.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let outside = self.scopes.len();
        self.scopes.push((comprehension.accumulator.clone(), accumulator.clone()));
        let within = self.scopes.len();
        self.scopes.push((comprehension.variable.clone(), first));
        if let Some(name) = &comprehension.second {
            self.scopes.push((name.clone(), second));
        }
        self.expression(&mut comprehension.condition);
        self.expect(&comprehension.condition, &Type::Bool);
        self.expression(&mut comprehension.step);
        self.expect(&comprehension.step, &accumulator);
        self.scopes.truncate(within);
        self.expression(&mut comprehension.result);
        self.scopes.truncate(outside);
        self.mapping.substitute(&self.get(&comprehension.result), false)
    }

    fn expect(&mut self, expr: &Expr, expected: &Type) {
        let found = self.get(expr);
        if !self.mapping.assign(expected, &found) {
            self.mismatch(expr.id, expected, &found);
        }
    }
}

/// `a.b.c` as text, if the expression is nothing but names.
fn qualified(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.clone()),
        ExprKind::Select(select) if !select.test_only => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// The types that have a name in expressions.
fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "string" => Type::String,
        "null_type" => Type::Null,
        "type" => Type::Type(None),
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "optional_type" => Type::optional(Type::Dyn),
        "net.IP" | "net.CIDR" => Type::opaque(name),
        _ => return None,
    })
}
