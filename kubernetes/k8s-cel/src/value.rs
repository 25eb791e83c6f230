//! Values of expressions, and how JSON becomes one.
//!
//! Upstream: github.com/google/cel-go/common/types/ref/reference.go: Val
pub(crate) mod authorization;
mod compare;
mod convert;
mod display;
mod map;
pub(crate) mod opaque;
pub(crate) mod time;

use std::fmt;
use std::sync::Arc;

pub(crate) use compare::{compare, equal};
pub(crate) use display::display_text;
pub use map::{ListKind, ListValue, MapKey, MapValue};

use crate::EvaluationError;
use crate::types::Type;
use authorization::{AuthorizationAttributes, AuthorizationCheck, Authorizer};
use opaque::Opaque;

/// The value of an expression, or why it has none.
pub(crate) type EvaluationResult = Result<Value, EvaluationError>;

/// A value of an expression. Copies are cheap: containers are shared.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `'text'`
    String(Arc<str>),
    /// `b'bytes'`
    Bytes(Arc<[u8]>),
    /// A point in time: nanoseconds since 1970, within the years 1 to 9999.
    Timestamp(i128),
    /// Nanoseconds.
    Duration(i64),
    /// `[1, 2]`
    List(Arc<ListValue>),
    /// `{'a': 1}`, or an object.
    Map(Arc<MapValue>),
    /// A value that may be absent.
    Optional(Option<Arc<Value>>),
    /// `int`, `type(x)`
    Type(Type),
    /// A value of a Kubernetes library.
    Opaque(Arc<Opaque>),
    /// An object whose fields the host computes when they are read.
    Host(Arc<dyn HostObject>),
}

/// An object whose fields are computed when they are read, such as the `variables` of a
/// ValidatingAdmissionPolicy.
pub trait HostObject: fmt::Debug + Send + Sync {
    /// The name of the object's type.
    fn type_name(&self) -> &str;

    /// The value of a field; nothing if there is no such field.
    fn field(&self, name: &str) -> Option<Result<Value, EvaluationError>>;
}

impl Value {
    /// Text.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(ListValue { items, kind: ListKind::Atomic }))
    }

    /// A map with text keys.
    pub fn map(entries: impl IntoIterator<Item = (String, Value)>) -> Self {
        let entries =
            entries.into_iter().map(|(key, value)| (MapKey::String(key.into()), value)).collect();
        Self::Map(Arc::new(MapValue { entries, object: None }))
    }

    /// The `authorizer` variable's value.
    pub fn authorizer(authorizer: Arc<dyn Authorizer>) -> Self {
        let check = AuthorizationCheck::new(authorizer);
        Self::Opaque(Arc::new(Opaque::Authorization(Box::new(check))))
    }

    /// The value of `authorizer.requestResource`: a check of the resource of the request,
    /// which lacks the verb.
    pub fn request_resource(
        authorizer: Arc<dyn Authorizer>,
        attributes: AuthorizationAttributes,
    ) -> Self {
        let check = AuthorizationCheck::about_resource(authorizer, attributes);
        Self::Opaque(Arc::new(Opaque::Authorization(Box::new(check))))
    }

    /// An object of the named type.
    pub fn object(name: &str, fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let entries =
            fields.into_iter().map(|(key, value)| (MapKey::String(key.into()), value)).collect();
        Self::Map(Arc::new(MapValue { entries, object: Some(name.into()) }))
    }

    /// Its type, as `type()` returns it.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(map) => match &map.object {
                None => Type::map(Type::Dyn, Type::Dyn),
                Some(name) => Type::Opaque(name.clone()),
            },
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Type(_) => Type::Type(None),
            Self::Opaque(value) => Type::opaque(value.type_name()),
            Self::Host(object) => Type::opaque(object.type_name()),
        }
    }

    /// The name of its type, as messages show it.
    pub(crate) fn type_name(&self) -> String {
        self.type_of().runtime_name().to_owned()
    }

    /// What it costs to look at all of it: elements of containers, characters of text, 1 for
    /// everything else.
    pub(crate) fn cost_size(&self) -> u64 {
        match self {
            Self::Optional(Some(value)) => value.cost_size(),
            other => other.size().unwrap_or(1),
        }
    }

    /// The value of `size()`, for values that have one.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.items.len(),
            Self::Map(map) => map.entries.len(),
            Self::Opaque(value) => return value.size(),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Timestamp(_)
            | Self::Duration(_)
            | Self::Optional(_)
            | Self::Type(_)
            | Self::Host(_) => return None,
        };
        Some(size as u64)
    }
}

impl PartialEq for Value {
    /// Equality as `==` of the language has it.
    fn eq(&self, other: &Self) -> bool {
        equal(self, other)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}
