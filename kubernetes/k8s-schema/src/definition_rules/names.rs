//! Names of a custom resource.
use serde_json::Value;

use super::{invalid, list, text};
use crate::{FieldError, names::label_1035};

/// Checks the names that are there.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceDefinitionNames
pub(super) fn check(names: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut look = |at: String, value: &str, mixed_case: bool| {
        let lower = value.to_lowercase();
        let problems = label_1035(if mixed_case { &lower } else { value });
        if problems.is_empty() {
            return;
        }
        let prefix =
            if mixed_case { "may have mixed case, but should otherwise match: " } else { "" };
        errors.push(invalid(at, &value.into(), format!("{prefix}{}", problems.join(","))));
    };
    for (name, mixed_case) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        if !text(names, name).is_empty() {
            look(format!("{path}.{name}"), text(names, name), mixed_case);
        }
    }
    for (index, short) in list(names, "shortNames").iter().enumerate() {
        look(format!("{path}.shortNames[{index}]"), short.as_str().unwrap_or_default(), false);
    }
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    let same = !kind.is_empty() && kind == list_kind;
    let categories = list(names, "categories");
    let mut later = Vec::new();
    for (index, category) in categories.iter().enumerate() {
        let category = category.as_str().unwrap_or_default();
        let problems = label_1035(category);
        if !problems.is_empty() {
            let at = format!("{path}.categories[{index}]");
            later.push(invalid(at, &category.into(), problems.join(",")));
        }
    }
    if same {
        let detail = "kind and listKind may not be the same";
        errors.push(invalid(format!("{path}.listKind"), &list_kind.into(), detail));
    }
    errors.extend(later);
}
