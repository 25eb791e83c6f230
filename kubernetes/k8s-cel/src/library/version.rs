//! Semantic versions.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/semverlib.go: SemverLib
//! Upstream: github.com/blang/semver/v4/semver.go: Parse
//! Upstream: github.com/blang/semver/v4/semver.go: ParseTolerant
use std::cmp::Ordering;

use semver::Version;

use super::EvaluationResult;
use crate::value::opaque::Opaque;
use crate::{EvaluationError, Value};

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match (function, arguments) {
        ("semver", [Value::String(text)]) => Some(read(text, false)),
        ("semver", [Value::String(text), Value::Bool(lenient)]) => Some(read(text, *lenient)),
        ("isSemver", [Value::String(text)]) => Some(Ok(Value::Bool(parse(text, false).is_ok()))),
        ("isSemver", [Value::String(text), Value::Bool(lenient)]) => {
            Some(Ok(Value::Bool(parse(text, *lenient).is_ok())))
        }
        ("semver_compare", [Value::String(left), Value::String(right)]) => {
            Some(compare(left, right))
        }
        (_, [Value::Opaque(of), rest @ ..]) => match &**of {
            Opaque::Version(version) => on_version(function, version, rest),
            _ => None,
        },
        _ => None,
    }
}

fn compare(left: &str, right: &str) -> EvaluationResult {
    let version = |text: &str| parse(text.trim(), true).map_err(EvaluationError::new);
    Ok(Value::Int(version(left)?.cmp_precedence(&version(right)?) as i64))
}

fn read(text: &str, lenient: bool) -> EvaluationResult {
    parse(text, lenient)
        .map(|version| Opaque::Version(version).into_value())
        .map_err(EvaluationError::new)
}

fn on_version(function: &str, version: &Version, rest: &[Value]) -> Option<EvaluationResult> {
    let [other] = rest else {
        let part = match function {
            "major" => version.major,
            "minor" => version.minor,
            "patch" => version.patch,
            _ => return None,
        };
        return rest.is_empty().then_some(Ok(Value::Int(part as i64)));
    };
    let Value::Opaque(other) = other else { return None };
    let Opaque::Version(other) = &**other else { return None };
    let order = version.cmp_precedence(other);
    Some(Ok(match function {
        "isGreaterThan" => Value::Bool(order == Ordering::Greater),
        "isLessThan" => Value::Bool(order == Ordering::Less),
        "compareTo" => Value::Int(order as i64),
        _ => return None,
    }))
}

fn parse(text: &str, lenient: bool) -> Result<Version, String> {
    if !lenient {
        return strict(text);
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    strict(&parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}

fn strict(text: &str) -> Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    if parts.len() != 3 {
        return Err("No Major.Minor.Patch elements found".to_owned());
    }
    for (name, part) in ["major", "minor"].iter().zip(&parts) {
        check_number(name, part)?;
    }
    let patch = parts[2].split(['-', '+']).next().unwrap_or_default();
    check_number("patch", patch)?;
    Version::parse(text).map_err(|_| {
        let wrong = |c: &char| !c.is_ascii_alphanumeric() && !"-.+".contains(*c);
        match text.chars().find(wrong) {
            Some(_) => format!("Invalid character(s) found in prerelease {text:?}"),
            None => "Prerelease is empty".to_owned(),
        }
    })
}

fn check_number(name: &str, part: &str) -> Result<(), String> {
    if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {part:?}"));
    }
    if part.len() > 1 && part.starts_with('0') {
        let title = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        return Err(format!("{title} number must not contain leading zeroes {part:?}"));
    }
    Ok(())
}
