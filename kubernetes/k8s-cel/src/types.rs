//! Types of expressions, as the checker knows them.
//!
//! Upstream: github.com/google/cel-go/common/types/types.go: Type
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression or of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// What an expression with an error has.
    Error,
    /// Known only when the expression is evaluated.
    Dyn,
    /// The type of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// 64 bits with a sign.
    Int,
    /// 64 bits without a sign.
    Uint,
    /// 64 bits, floating point.
    Double,
    /// Unicode text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A span of time.
    Duration,
    /// A list of one type.
    List(Arc<Type>),
    /// A map from the one to the other.
    Map(Arc<Type>, Arc<Type>),
    /// An object with declared fields.
    Object(Arc<ObjectType>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// A type as a value; of what type, where it is known.
    Type(Option<Arc<Type>>),
    /// A type of a Kubernetes library, such as `kubernetes.Quantity`.
    Opaque(Arc<str>),
    /// A type that unification finds, in signatures.
    Parameter(Arc<str>),
}

/// An object type: two with the same name are the same.
#[derive(Clone, Debug, Eq)]
pub struct ObjectType {
    /// The name that messages show.
    pub name: String,
    /// Declared fields by the names that expressions use.
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    /// A list of `element`.
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    /// A map from `key` to `value`.
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional `value`.
    pub fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// An object type with these fields.
    pub fn object(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = (String, Type)>,
    ) -> Self {
        let fields = fields.into_iter().collect();
        Self::Object(Arc::new(ObjectType { name: name.into(), fields }))
    }

    /// A type of a Kubernetes library.
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(name.into())
    }

    /// The type of the `authorizer` variable.
    pub fn authorizer() -> Self {
        Self::opaque("kubernetes.authorization.Authorizer")
    }

    /// The type of the `authorizer.requestResource` variable.
    pub fn resource_check() -> Self {
        Self::opaque("kubernetes.authorization.ResourceCheck")
    }

    /// The types that this one is made of.
    pub(crate) fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(element) | Self::Optional(element) | Self::Type(Some(element)) => {
                vec![element]
            }
            Self::Map(key, value) => vec![key, value],
            Self::Error
            | Self::Dyn
            | Self::Null
            | Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::Timestamp
            | Self::Duration
            | Self::Object(_)
            | Self::Type(None)
            | Self::Opaque(_)
            | Self::Parameter(_) => Vec::new(),
        }
    }

    /// The name that `type()` compares by, without parameters.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Self::Error => "error",
            Self::Dyn => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Object(object) => &object.name,
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Opaque(name) | Self::Parameter(name) => name,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => out.write_str("!error!"),
            Self::Null => out.write_str("null"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::Duration => out.write_str("duration"),
            Self::List(element) => write!(out, "list({element})"),
            Self::Map(key, value) => write!(out, "map({key}, {value})"),
            Self::Optional(value) => write!(out, "optional_type({value})"),
            Self::Type(Some(of)) => write!(out, "type({of})"),
            Self::Dyn
            | Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::Object(_)
            | Self::Type(None)
            | Self::Opaque(_)
            | Self::Parameter(_) => out.write_str(self.runtime_name()),
        }
    }
}
