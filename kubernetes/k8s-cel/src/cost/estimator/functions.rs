//! What calls may cost: cel-go's list and set functions first, then Kubernetes' functions, then
//! cel-go's own.
use super::{CostEstimate, CostEstimator, LIST_COST, SizeEstimate};
use crate::Value;
use crate::ast::{Expr, ExprKind};
use crate::cost::range::scaled;
use crate::types::Type;

const TRAVERSAL: f64 = 0.1;
const PATTERN: f64 = 0.25;
/// The size of the largest pattern of a named format that Kubernetes' estimate assumes.
const FORMAT_PATTERN_SIZE: f64 = 128.0;
const FORMAT_SIZE_MAX: u64 = 64;
const ONE: CostEstimate = CostEstimate::fixed(1);

/// An argument of a call.
#[derive(Clone, Debug)]
pub(super) struct CostNode<'e> {
    pub(super) expr: &'e Expr,
    pub(super) path: Vec<String>,
    pub(super) of: Type,
    /// Its size; absent if the expression does not determine it.
    pub(super) size: Option<SizeEstimate>,
}

/// A call and one function that it may mean.
pub(super) struct OverloadCall<'e> {
    pub(super) function: &'e str,
    pub(super) overload: &'e str,
    pub(super) target: Option<&'e CostNode<'e>>,
    pub(super) arguments: &'e [CostNode<'e>],
    pub(super) costs: &'e [CostEstimate],
}

type Estimate = (CostEstimate, Option<SizeEstimate>);

/// The cost of a call with its arguments, and the size of its result.
pub(super) fn estimate(
    estimator: &mut CostEstimator<'_>,
    expr: &Expr,
    called: &OverloadCall<'_>,
) -> Estimate {
    let arguments = called.costs.iter().fold(CostEstimate::default(), |sum, cost| sum.plus(*cost));
    let known = extension(estimator, called).or_else(|| kubernetes(estimator, called));
    if let Some((cost, size)) = known {
        return (cost.plus(arguments), size);
    }
    language(estimator, expr, called, arguments)
}

fn size_of(estimator: &CostEstimator<'_>, node: &CostNode<'_>) -> SizeEstimate {
    node.size
        .or_else(|| estimator.sizes.size(&node.path, &node.of))
        .unwrap_or(SizeEstimate::UNKNOWN)
}

fn literal_int(node: &CostNode<'_>, otherwise: u64) -> u64 {
    match &node.expr.kind {
        ExprKind::Literal(Value::Int(value)) => u64::try_from(*value).unwrap_or(0),
        _ => otherwise,
    }
}

/// cel-go's list and set functions.
///
/// Upstream: github.com/google/cel-go/ext/lists.go: estimateListCall
/// Upstream: github.com/google/cel-go/ext/sets.go: estimateSetsCost
fn extension(estimator: &CostEstimator<'_>, called: &OverloadCall<'_>) -> Option<Estimate> {
    let allocating = |factor: f64, size: SizeEstimate| {
        Some((size.scaled(factor).plus(ONE).plus(LIST_COST), Some(size)))
    };
    let sorted = |node: &CostNode<'_>, of_text: bool| {
        let size = size_of(estimator, node);
        allocating(if of_text { 2.0 + TRAVERSAL } else { 2.0 }, size.times(size))
    };
    let of_text =
        called.overload.starts_with("list_string_") || called.overload.starts_with("list_bytes_");
    match (called.overload, called.target, called.arguments) {
        (
            "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list",
            None,
            [left, right],
        ) => {
            let factor = if called.overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
            let both = size_of(estimator, left).times(size_of(estimator, right));
            Some((both.scaled(factor).plus(ONE), None))
        }
        ("list_slice", Some(list), [start, end]) => {
            let start = literal_int(start, 0);
            let end = literal_int(end, size_of(estimator, list).max);
            allocating(1.0, SizeEstimate::fixed(end.wrapping_sub(start)))
        }
        ("lists_range", None, [count]) => {
            allocating(1.0, SizeEstimate::fixed(literal_int(count, u64::MAX)))
        }
        ("list_reverse", Some(list), []) => allocating(1.0, size_of(estimator, list)),
        ("list_flatten", Some(list), []) => allocating(1.0, size_of(estimator, list)),
        ("list_flatten_int", Some(list), [depth]) => {
            allocating(literal_int(depth, u64::MAX) as f64, size_of(estimator, list))
        }
        ("list_distinct", Some(list), []) => sorted(list, false),
        (overload, Some(list), []) if overload.ends_with("_sort") => sorted(list, of_text),
        (overload, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => {
            sorted(keys, of_text)
        }
        _ => None,
    }
}

/// Kubernetes' functions; by name, whatever they are called on.
///
/// Upstream: k8s.io/apiserver/pkg/cel/library/cost.go: EstimateCallCost
fn kubernetes(estimator: &CostEstimator<'_>, called: &OverloadCall<'_>) -> Option<Estimate> {
    let size = |node: &CostNode<'_>| size_of(estimator, node);
    let first = called.arguments.first();
    match called.function {
        "check" => Some((CostEstimate::fixed(350_000), None)),
        "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
        | "allowed" | "reason" | "error" | "errored" => Some((ONE, None)),
        "fieldSelector" | "labelSelector" => {
            let text = size(first?);
            let requirements = text.scaled(0.5).scaled(50.0);
            Some((LIST_COST.plus(text.scaled(TRAVERSAL)).plus(requirements), None))
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            Some((over_list(estimator, called.function, called.target?), None))
        }
        "url" | "jsonpatch.escapeKey" => {
            let text = size(first?);
            Some((text.scaled(TRAVERSAL), Some(text)))
        }
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            let text = size(called.target?);
            Some((text.scaled(TRAVERSAL), Some(text)))
        }
        "replace" | "split" | "join" | "find" | "findAll" => on_text(estimator, called),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver"
        | "semver_compare" => Some((size(first?).scaled(TRAVERSAL), None)),
        "ip" if called.overload == "cidr_ip" => Some((ONE, None)),
        "ip" => Some((size(first?).scaled(TRAVERSAL), None)),
        "ip.isCanonical" => Some((size(first?).scaled(2.0 * TRAVERSAL), None)),
        "containsIP" | "containsCIDR" => {
            let address = SizeEstimate { min: 4, max: 16 };
            let mut cost = address.plus(address).scaled(TRAVERSAL);
            if called.function == "containsCIDR" {
                cost = cost.plus(address.scaled(TRAVERSAL)).plus(ONE);
            }
            if called.overload.ends_with("_string") {
                cost = cost.plus(size(first?).scaled(TRAVERSAL));
            }
            Some((cost, None))
        }
        "validate" => {
            let cost = size(first?).scaled(TRAVERSAL).scaled(FORMAT_PATTERN_SIZE * PATTERN);
            Some((cost, None))
        }
        "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => Some((ONE, None)),
        "_==_" => equality(called.arguments),
        _ => None,
    }
}

/// Functions that look at each item of a list, or at each character of a text.
fn over_list(estimator: &CostEstimator<'_>, function: &str, target: &CostNode<'_>) -> CostEstimate {
    let size = size_of(estimator, target);
    let Some(element) = element(target) else {
        return if function == "includes" { size.times_cost(ONE) } else { size.scaled(TRAVERSAL) };
    };
    let mut each = ONE;
    if matches!(element.1, Type::String | Type::Bytes) {
        let text = estimator.sizes.size(&element.0, &element.1).unwrap_or(SizeEstimate::UNKNOWN);
        each = each.plus(text.scaled(TRAVERSAL));
    }
    size.times_cost(each)
}

/// The path and the type of a container's items.
fn element(list: &CostNode<'_>) -> Option<(Vec<String>, Type)> {
    let of = (*list.of.parameters().first()?).clone();
    let mut path = list.path.clone();
    if !path.is_empty() {
        path.push("@items".to_owned());
    }
    Some((path, of))
}

fn on_text(estimator: &CostEstimator<'_>, called: &OverloadCall<'_>) -> Option<Estimate> {
    let target = called.target?;
    let size = size_of(estimator, target);
    match (called.function, called.arguments) {
        ("replace", [old, new, ..]) => {
            let result = replaced(size, size_of(estimator, old), size_of(estimator, new));
            Some((size.scaled(2.0 * TRAVERSAL), Some(result)))
        }
        ("split", arguments) => {
            let max = match arguments.get(1).map(|count| &count.expr.kind) {
                Some(ExprKind::Literal(Value::Int(count))) => *count as u64,
                _ => size.max,
            };
            Some((size.scaled(2.0 * TRAVERSAL), Some(SizeEstimate { min: 0, max })))
        }
        ("join", arguments) => {
            let mut result = SizeEstimate::default();
            if let Some((path, of)) = element(target) {
                let each = estimator.sizes.size(&path, &of).unwrap_or(SizeEstimate::UNKNOWN);
                result = size.times(each);
            }
            if let Some(separator) = arguments.first() {
                let count = SizeEstimate {
                    min: size.min.saturating_sub(1),
                    max: size.max.saturating_sub(1),
                };
                result = result.plus(size_of(estimator, separator).times(count));
            }
            Some((result.scaled(TRAVERSAL), Some(result)))
        }
        ("find" | "findAll", [pattern, ..]) => {
            let text = size.plus(SizeEstimate::fixed(1)).scaled(TRAVERSAL);
            let pattern = size_of(estimator, pattern).scaled(PATTERN);
            Some((text.times(pattern), Some(SizeEstimate { min: 0, max: size.max })))
        }
        _ => None,
    }
}

/// The size of a text in which one part is replaced by another.
fn replaced(text: SizeEstimate, old: SizeEstimate, new: SizeEstimate) -> SizeEstimate {
    let (mut count, mut retained) = (SizeEstimate::default(), SizeEstimate::default());
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        retained.max = text.max;
    } else if new.max <= old.min {
        retained.max = text.max;
    } else {
        count.max = (text.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        retained.min = text.min;
    } else if old.max <= new.min {
        retained.min = text.min;
    } else {
        count.min = (text.min as f64 / old.max as f64).ceil() as u64;
    }
    count.times(new).plus(retained)
}

/// Equality of Kubernetes' types is cheap.
fn equality(arguments: &[CostNode<'_>]) -> Option<Estimate> {
    let [left, right] = arguments else { return None };
    if left.of != right.of {
        return None;
    }
    let Type::Opaque(name) = &left.of else { return None };
    match &**name {
        "kubernetes.NamedFormat" => {
            Some((CostEstimate { min: 1, max: FORMAT_SIZE_MAX }.scaled(TRAVERSAL), None))
        }
        "kubernetes.URL" => {
            let max = right.size.map_or(1, |size| size.max);
            Some((CostEstimate { min: 1, max }.scaled(TRAVERSAL), None))
        }
        _ => Some((ONE, None)),
    }
}

/// The functions of the language.
///
/// Upstream: github.com/google/cel-go/checker/cost.go: functionCost
fn language(
    estimator: &mut CostEstimator<'_>,
    expr: &Expr,
    called: &OverloadCall<'_>,
    arguments: CostEstimate,
) -> Estimate {
    let known = |node: &CostNode<'_>| node.size.unwrap_or(SizeEstimate::UNKNOWN);
    let with = |cost: CostEstimate, size: Option<SizeEstimate>| (cost.plus(arguments), size);
    match (called.overload, called.target, called.arguments) {
        ("string_format", Some(target), _) => with(known(target).scaled(TRAVERSAL), None),
        ("string_to_bytes", _, [text]) => {
            let size = known(text);
            let result = SizeEstimate { min: size.min, max: size.max.wrapping_mul(4) };
            with(size.scaled(TRAVERSAL), Some(result))
        }
        ("bytes_to_string", _, [bytes]) => {
            let size = known(bytes);
            let result = SizeEstimate { min: size.min / 4, max: size.max };
            with(size.scaled(TRAVERSAL), Some(result))
        }
        ("strings_quote", _, [text]) => {
            let size = known(text);
            let max = size.max.wrapping_mul(2).wrapping_add(2);
            let result = SizeEstimate { min: size.min.wrapping_add(2), max };
            with(size.scaled(TRAVERSAL), Some(result))
        }
        ("starts_with_string" | "ends_with_string", _, [part]) => {
            with(known(part).scaled(TRAVERSAL), None)
        }
        ("in_list", _, [_, list]) => with(known(list).scaled(1.0), None),
        ("matches_string", Some(text), [pattern]) | ("matches", None, [text, pattern]) => {
            let text = known(text).plus(SizeEstimate::fixed(1)).scaled(TRAVERSAL);
            with(text.times(known(pattern).scaled(PATTERN)), None)
        }
        ("contains_string", Some(text), [part]) => {
            let cost = known(text).scaled(TRAVERSAL).times(known(part).scaled(TRAVERSAL));
            with(cost, None)
        }
        ("logical_or" | "logical_and", ..) => {
            let [left, right] = called.costs else { return (arguments, None) };
            (CostEstimate { min: left.min, max: left.plus(*right).max }, None)
        }
        ("conditional", _, [_, truthy, falsy]) => {
            let size = known(truthy).union(known(falsy));
            estimator.set_entries(expr, truthy.expr, falsy.expr);
            let [condition, if_true, if_false] = called.costs else { return (arguments, None) };
            (condition.plus(if_true.union(*if_false)), Some(size))
        }
        ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
            let size = known(left).plus(known(right));
            estimator.set_entries(expr, left.expr, right.expr);
            let cost = if called.overload == "add_list" { ONE } else { size.scaled(TRAVERSAL) };
            with(cost, Some(size))
        }
        (overload, _, [left, right]) if compares_sizes(overload) => {
            let most = known(left).max.min(known(right).max);
            let cost = CostEstimate { min: u64::from(most > 0), max: most };
            with(CostEstimate { min: scaled(cost.min, TRAVERSAL), ..cost.scaled(TRAVERSAL) }, None)
        }
        _ => with(ONE, None),
    }
}

fn compares_sizes(overload: &str) -> bool {
    matches!(
        overload,
        "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals"
    )
}
