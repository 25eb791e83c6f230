//! Unification: which types stand for the type parameters of signatures.
//!
//! Upstream: github.com/google/cel-go/checker/types.go: internalIsAssignable
//! Upstream: github.com/google/cel-go/checker/mapping.go: mapping
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::Type;

/// The types found for parameters so far.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    found: BTreeMap<Arc<str>, Type>,
    /// What was there before each change since the last decision.
    undo: Vec<(Arc<str>, Option<Type>)>,
    fresh: usize,
}

impl Mapping {
    /// A parameter that occurs nowhere else.
    pub(super) fn fresh(&mut self) -> Type {
        let name = format!("_var{}", self.fresh);
        self.fresh += 1;
        Type::Parameter(name.into())
    }

    /// Whether the second type can be where the first one is; then parameters are bound so.
    pub(super) fn assign(&mut self, target: &Type, source: &Type) -> bool {
        self.decide(|mapping| mapping.assignable(target, source))
    }

    /// The same for lists of types, all or nothing.
    pub(super) fn assign_all(&mut self, targets: &[Type], sources: &[Type]) -> bool {
        self.decide(|mapping| mapping.all_assignable(targets, sources))
    }

    fn decide(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        self.undo.clear();
        let holds = attempt(self);
        if !holds {
            while let Some((name, before)) = self.undo.pop() {
                match before {
                    Some(before) => self.found.insert(name, before),
                    None => self.found.remove(&name),
                };
            }
        }
        holds
    }

    fn add(&mut self, parameter: &Type, bound: Type) {
        if let Type::Parameter(name) = parameter {
            let before = self.found.insert(name.clone(), bound);
            self.undo.push((name.clone(), before));
        }
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Parameter(name) => self.found.get(name),
            _ => None,
        }
    }

    fn all_assignable(&mut self, targets: &[Type], sources: &[Type]) -> bool {
        targets.len() == sources.len()
            && targets.iter().zip(sources).all(|(target, source)| self.assignable(target, source))
    }

    fn assignable(&mut self, left: &Type, right: &Type) -> bool {
        if matches!(right, Type::Parameter(_)) {
            let (valid, has_substitution) = self.valid_substitution(left, right);
            if valid || has_substitution {
                return valid;
            }
        }
        if matches!(left, Type::Parameter(_)) {
            return self.valid_substitution(right, left).0;
        }
        if is_dyn_or_error(left) || is_dyn_or_error(right) {
            return true;
        }
        match (left, right) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(left), Type::List(right))
            | (Type::Optional(left), Type::Optional(right)) => self.assignable(left, right),
            (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
                self.assignable(left_key, right_key) && self.assignable(left_value, right_value)
            }
            _ => left == right,
        }
    }

    /// Whether `parameter` may stand for `other`, and whether it stood for something before.
    fn valid_substitution(&mut self, other: &Type, parameter: &Type) -> (bool, bool) {
        if other == parameter {
            return (true, true);
        }
        if let Some(found) = self.find(parameter).cloned() {
            if *other == found {
                return (true, true);
            }
            if self.assignable(other, &found) {
                let general = most_general(other, &found).clone();
                if self.not_within(parameter, &general) {
                    self.add(parameter, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.not_within(parameter, other) {
            self.add(parameter, other.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether a parameter does not occur within a type.
    fn not_within(&self, parameter: &Type, within: &Type) -> bool {
        if parameter == within {
            return false;
        }
        match within {
            Type::Parameter(_) => {
                self.find(within).is_none_or(|found| self.not_within(parameter, found))
            }
            other => other.parameters().iter().all(|inner| self.not_within(parameter, inner)),
        }
    }

    /// The type with all bound parameters replaced; others become `dyn` on demand.
    pub(super) fn substitute(&self, of: &Type, rest_is_dyn: bool) -> Type {
        if let Some(found) = self.find(of) {
            return self.substitute(found, rest_is_dyn);
        }
        let inner = |inner: &Arc<Type>| Arc::new(self.substitute(inner, rest_is_dyn));
        match of {
            Type::Parameter(_) if rest_is_dyn => Type::Dyn,
            Type::List(element) => Type::List(inner(element)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            Type::Optional(value) => Type::Optional(inner(value)),
            Type::Type(Some(of)) => Type::Type(Some(inner(of))),
            other => other.clone(),
        }
    }
}

/// Replaces parameters by the given types.
pub(super) fn instantiate(of: &Type, replacements: &[(Arc<str>, Type)]) -> Type {
    let inner = |inner: &Arc<Type>| Arc::new(instantiate(inner, replacements));
    match of {
        Type::Parameter(name) => replacements
            .iter()
            .find(|(parameter, _)| parameter == name)
            .map_or_else(|| of.clone(), |(_, replacement)| replacement.clone()),
        Type::List(element) => Type::List(inner(element)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        Type::Optional(value) => Type::Optional(inner(value)),
        Type::Type(Some(of)) => Type::Type(Some(inner(of))),
        other => other.clone(),
    }
}

pub(super) fn is_dyn_or_error(of: &Type) -> bool {
    matches!(of, Type::Dyn | Type::Error)
}

/// Whether `null` may be where such a value is.
fn is_nullable(of: &Type) -> bool {
    matches!(
        of,
        Type::Null
            | Type::Optional(_)
            | Type::Object(_)
            | Type::Opaque(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// The less specific of two types that agree.
pub(super) fn most_general<'a>(left: &'a Type, right: &'a Type) -> &'a Type {
    if is_equal_or_less_specific(left, right) { left } else { right }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Parameter(_), _) => true,
        (_, Type::Dyn | Type::Parameter(_)) => false,
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
            is_equal_or_less_specific(left, right)
        }
        (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
            is_equal_or_less_specific(left_key, right_key)
                && is_equal_or_less_specific(left_value, right_value)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => left == right,
    }
}
