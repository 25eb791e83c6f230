//! What calls cost, by what they were called with: Kubernetes' estimates first, then those of
//! cel-go's list and set functions, then cel-go's own.
use crate::Value;
use crate::plan::CallPlan;
use crate::value::opaque::Opaque;

const TRAVERSAL: f64 = 0.1;
const PATTERN: f64 = 0.25;
const AUTHORIZATION_COST: u64 = 350_000;

/// The cost of a call; of a failed one without its result.
///
/// Upstream: github.com/google/cel-go/interpreter/runtimecost.go: costCall
pub(super) fn of_call(call: &CallPlan, arguments: &[Value], result: Option<&Value>) -> u64 {
    let size = |index: usize| arguments.get(index).map_or(1, Value::cost_size);
    let overload = call.overload.unwrap_or_default();
    extension(overload, arguments, result)
        .or_else(|| kubernetes(call, overload, arguments, result))
        .unwrap_or_else(|| match overload {
            "starts_with_string" | "ends_with_string" => scaled(size(1), TRAVERSAL),
            "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => {
                scaled(size(0), TRAVERSAL)
            }
            "in_list" => size(1),
            "add_string" | "add_bytes" => scaled(size(0).saturating_add(size(1)), TRAVERSAL),
            "matches" | "matches_string" => matching(size(0), size(1)),
            "contains_string" => scaled(size(0), TRAVERSAL) * scaled(size(1), TRAVERSAL),
            _ if compares_text(call, overload) => scaled(size(0).min(size(1)), TRAVERSAL),
            _ => 1,
        })
}

/// Rounds up, as a share of a size.
pub(crate) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn matching(text: u64, pattern: u64) -> u64 {
    let text = ((1.0 + text as f64) * TRAVERSAL).ceil() as u64;
    text.saturating_mul(scaled(pattern, PATTERN))
}

fn compares_text(call: &CallPlan, overload: &str) -> bool {
    matches!(call.function.as_str(), "_==_" | "_!=_")
        || matches!(
            overload,
            "less_string"
                | "less_equals_string"
                | "greater_string"
                | "greater_equals_string"
                | "less_bytes"
                | "less_equals_bytes"
                | "greater_bytes"
                | "greater_equals_bytes"
        )
}

/// cel-go's list and set functions.
///
/// Upstream: github.com/google/cel-go/ext/lists.go: trackAllocatingListCall
/// Upstream: github.com/google/cel-go/ext/sets.go: trackSetsCost
fn extension(overload: &str, arguments: &[Value], result: Option<&Value>) -> Option<u64> {
    let plain = |index: usize| arguments.get(index).and_then(Value::size).unwrap_or(1);
    let allocating = |factor: f64, size: u64| (size as f64 * factor) as u64 + 11;
    let compared = |index: usize| {
        let Some(Value::List(list)) = arguments.get(index) else { return allocating(2.0, 0) };
        let factor = match list.items.first() {
            Some(Value::String(_) | Value::Bytes(_)) => 2.0 + TRAVERSAL,
            _ => 2.0,
        };
        let size = list.items.len() as u64;
        allocating(factor, size.saturating_mul(size))
    };
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => {
            1 + plain(0).saturating_mul(plain(1))
        }
        "list_sets_equivalent_list" => 1 + plain(0).saturating_mul(plain(1)).saturating_mul(2),
        "list_slice" | "lists_range" | "list_reverse" => {
            allocating(1.0, result.and_then(Value::size).unwrap_or(1))
        }
        "list_flatten" => allocating(1.0, plain(0)),
        "list_flatten_int" => {
            let depth = match arguments.get(1) {
                Some(Value::Int(depth)) => *depth as f64,
                _ => 1.0,
            };
            allocating(if depth < 0.0 { 1.0 } else { depth }, plain(0))
        }
        "list_distinct" => compared(0),
        _ if overload.ends_with("_sortByAssociatedKeys") => compared(1),
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => compared(0),
        _ => return None,
    })
}

/// Kubernetes' functions; by name, whatever they are called on.
///
/// Upstream: k8s.io/apiserver/pkg/cel/library/cost.go: CallCost
fn kubernetes(
    call: &CallPlan,
    overload: &str,
    arguments: &[Value],
    result: Option<&Value>,
) -> Option<u64> {
    let plain = |index: usize| arguments.get(index).and_then(Value::size).unwrap_or(1);
    Some(match call.function.as_str() {
        "check" => AUTHORIZATION_COST,
        "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
        | "allowed" | "reason" | "error" | "errored" => 1,
        "fieldSelector" | "labelSelector" => {
            let size = plain(1);
            10 + scaled(size, TRAVERSAL) + scaled(scaled(size, 0.5), 50.0)
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            arguments.first().map_or(0, traversal)
        }
        "url" | "jsonpatch.escapeKey" | "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            scaled(plain(0), TRAVERSAL)
        }
        "replace" | "split" => scaled(plain(0), 2.0 * TRAVERSAL),
        "join" => scaled(result.and_then(Value::size).unwrap_or(1), 2.0 * TRAVERSAL),
        "find" | "findAll" => matching(plain(0), plain(1)),
        "cidr" | "isIP" | "isCIDR" => scaled(plain(0), TRAVERSAL),
        "ip" if overload == "cidr_ip" => 1,
        "ip" => scaled(plain(0), TRAVERSAL),
        "ip.isCanonical" => scaled(plain(0), 2.0 * TRAVERSAL),
        "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast" => 1,
        "containsIP" => {
            let text = if overload == "cidr_contains_ip_string" { plain(1) } else { 0 };
            scaled(2 * plain(0), TRAVERSAL) + scaled(text, TRAVERSAL)
        }
        "containsCIDR" => {
            let text = if overload == "cidr_contains_cidr_string" { plain(1) } else { 0 };
            let both = scaled(2 * plain(0), TRAVERSAL) + scaled(plain(0), TRAVERSAL) + 1;
            both + scaled(text, TRAVERSAL)
        }
        "quantity" | "isQuantity" | "semver" | "isSemver" | "semver_compare" => {
            scaled(plain(0), TRAVERSAL)
        }
        "validate" => match arguments.first() {
            Some(Value::Opaque(of)) => match &**of {
                Opaque::Format(format) => matching(plain(1), format.pattern_size()),
                _ => return None,
            },
            _ => return None,
        },
        "format.named" => 1,
        "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan"
        | "isLessThan" | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" => 1,
        "getScheme" | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery" => 1,
        "_==_" if matches!(arguments.first(), Some(Value::Opaque(_))) => 1,
        _ => return None,
    })
}

/// What it costs to look at everything in a value.
///
/// Upstream: k8s.io/apiserver/pkg/cel/library/cost.go: traversalCost
fn traversal(value: &Value) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        Value::List(list) => list.items.iter().map(traversal).sum(),
        Value::Map(map) => {
            map.entries.iter().map(|(key, value)| traversal(&key.value()) + traversal(value)).sum()
        }
        _ => 1,
    }
}
