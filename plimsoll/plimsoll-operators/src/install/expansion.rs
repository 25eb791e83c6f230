//! Meanings of requested ranges.

/// Returns the meanings of ranges, each once.
pub(crate) fn meanings<'a>(ranges: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    for meaning in ranges.filter_map(expanded) {
        if !found.contains(&meaning) {
            found.push(meaning);
        }
    }
    found
}

/// Returns the meaning of a range with `^` or `~`, and the range for patch releases only; `None` for other
/// ranges.
pub fn expanded(range: &str) -> Option<String> {
    let (sign, rest) = range.trim().split_at_checked(1)?;
    let numbers: Vec<u64> = rest.split('.').map_while(|it| it.parse().ok()).collect();
    let bound = |at: usize| numbers.get(at).copied().unwrap_or_default();
    let (major, minor, patch) = (bound(0), bound(1), bound(2));
    if numbers.is_empty() || rest.contains([' ', ',', '|', '-']) {
        return None;
    }
    let end = match (sign, numbers.len()) {
        ("^", _) if major > 0 => (major + 1, 0),
        ("^", 1) | ("~", 1) => (major + 1, 0),
        ("^" | "~", _) => (major, minor + 1),
        _ => return None,
    };
    if sign == "^" && major == 0 && minor == 0 && numbers.len() > 2 {
        return None;
    }
    let hint = match sign == "^" && numbers.len() > 1 && end.1 == 0 {
        true => format!("; for patch releases alone, use ~{major}.{minor}"),
        false => String::new(),
    };
    Some(format!("{range} is >= v{major}.{minor}.{patch} < v{}.{}.0{hint}", end.0, end.1))
}
