//! The functions that expressions may call, with their signatures.
//!
//! Upstream: github.com/google/cel-go/common/stdlib/standard.go: Functions
//! Upstream: github.com/google/cel-go/ext/strings.go: Strings
//! Upstream: github.com/google/cel-go/ext/lists.go: Lists
//! Upstream: github.com/google/cel-go/ext/sets.go: Sets
//! Upstream: k8s.io/apiserver/pkg/cel/library/libraries.go: KnownLibraries
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::types::Type;

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Its id, by which costs are found.
    pub(crate) id: String,
    /// Whether it is called as `target.function()`.
    pub(crate) is_method: bool,
    /// Whether only stored expressions may use it.
    pub(crate) stored_only: bool,
    /// What it has to be declared with; nothing if every environment has it.
    pub(crate) on_demand: Option<OnDemand>,
    /// The target, if any, and the arguments.
    pub(crate) arguments: Vec<Type>,
    pub(crate) result: Type,
    /// The type parameters in it.
    pub(crate) parameters: Vec<Arc<str>>,
}

/// What declares a function that not every environment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDemand {
    /// [`crate::Environment::with_semver_compare`]
    SemverCompare,
    /// [`crate::Environment::with_patch_types`]
    PatchTypes,
}

/// The functions that an environment has on demand only: one that Kubernetes does not declare and
/// constraints of operator bundles may use, and one of mutating policies.
///
/// Upstream: k8s.io/apiserver/pkg/cel/library/jsonpatch.go: jsonPatchLibraryDecls
const ON_DEMAND: [&str; 2] = [
    "semver_compare | semver_compare_dyn_dyn | g | dyn, dyn | int | semver-compare",
    "jsonpatch.escapeKey | string_jsonpatch_escapeKey_string | g | string | string | patch-types",
];

/// The signatures of a function; nothing if there is no such function.
pub(crate) fn overloads(function: &str) -> Option<&'static [Overload]> {
    static TABLE: OnceLock<BTreeMap<String, Vec<Overload>>> = OnceLock::new();
    TABLE.get_or_init(read).get(function).map(Vec::as_slice)
}

fn read() -> BTreeMap<String, Vec<Overload>> {
    let mut table: BTreeMap<String, Vec<Overload>> = BTreeMap::new();
    let text = include_str!("../data/functions.txt");
    let lines = text.lines().chain(ON_DEMAND);
    for line in lines.filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [function, id, style, arguments, result, rest @ ..] = columns.as_slice() else {
            continue;
        };
        let mut reader = TypeReader { rest: arguments, parameters: Vec::new() };
        let mut types = Vec::new();
        while !reader.rest.trim().is_empty() {
            types.push(reader.read());
            reader.rest = reader.rest.trim_start().trim_start_matches(',').trim_start();
        }
        reader.rest = result;
        let result = reader.read();
        table.entry((*function).to_owned()).or_default().push(Overload {
            id: (*id).to_owned(),
            is_method: *style == "m",
            stored_only: rest.contains(&"stored"),
            on_demand: match rest {
                ["semver-compare"] => Some(OnDemand::SemverCompare),
                ["patch-types"] => Some(OnDemand::PatchTypes),
                _ => None,
            },
            arguments: types,
            result,
            parameters: reader.parameters,
        });
    }
    table
}

struct TypeReader<'a> {
    rest: &'a str,
    parameters: Vec<Arc<str>>,
}

impl TypeReader<'_> {
    fn read(&mut self) -> Type {
        let text = self.rest.trim_start();
        let end = text.find([',', '(', ')']).unwrap_or(text.len());
        let name = text[..end].trim_end();
        self.rest = &text[end..];
        let simple = match name {
            "dyn" => Some(Type::Dyn),
            "null" => Some(Type::Null),
            "bool" => Some(Type::Bool),
            "int" => Some(Type::Int),
            "uint" => Some(Type::Uint),
            "double" => Some(Type::Double),
            "string" => Some(Type::String),
            "bytes" => Some(Type::Bytes),
            "timestamp" => Some(Type::Timestamp),
            "duration" => Some(Type::Duration),
            _ => None,
        };
        if let Some(simple) = simple {
            return simple;
        }
        if self.rest.starts_with('(') {
            self.rest = &self.rest[1..];
            let first = self.read();
            let read = match name {
                "list" => Type::list(first),
                "map" => {
                    self.rest = self.rest.trim_start().trim_start_matches(',');
                    Type::map(first, self.read())
                }
                "optional_type" => Type::optional(first),
                _ => Type::Type(Some(Arc::new(first))),
            };
            self.rest = self.rest.trim_start().trim_start_matches(')');
            return read;
        }
        if name.len() == 1 {
            let name: Arc<str> = name.into();
            if !self.parameters.contains(&name) {
                self.parameters.push(name.clone());
            }
            return Type::Parameter(name);
        }
        Type::opaque(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_with_their_parameters() {
        let found = overloads("cel.@mapInsert").expect("it is in the table");
        assert_eq!(found[0].arguments.len(), 3);
        assert_eq!(found[0].result.to_string(), "map(K, V)");
        assert_eq!(overloads("optional.none").expect("it is in the table")[0].arguments.len(), 0);
        assert_eq!(overloads("_||_").expect("it is in the table").len(), 1);
        let validate = overloads("validate").expect("it is in the table");
        assert_eq!(validate[0].result.to_string(), "optional_type(list(string))");
        assert!(overloads("nothing").is_none());
    }
}
