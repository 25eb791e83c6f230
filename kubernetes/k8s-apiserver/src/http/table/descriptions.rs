//! What the columns of built-in kinds mean, as a real server describes them.
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The descriptions of columns by name.
type Columns = BTreeMap<String, String>;

/// Under `GROUP/Kind`, and under `*` for the columns that most kinds have.
static ALL: LazyLock<BTreeMap<String, Columns>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("descriptions.json"))
        .expect("the descriptions of columns are JSON")
});

/// The description of a column of a kind; empty if there is none.
pub(super) fn of(group: &str, kind: &str, column: &str) -> &'static str {
    [&format!("{group}/{kind}"), "*"]
        .into_iter()
        .find_map(|key| ALL.get(key)?.get(column))
        .map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_described_by_its_kind_or_for_all() {
        let check = |group, kind, column, beginning: &str| {
            let found = of(group, kind, column);
            assert_eq!(found.is_empty(), beginning.is_empty(), "{found}");
            assert!(found.starts_with(beginning), "{found}");
        };
        check("apps", "Deployment", "Ready", "Number of the pod");
        check("apps", "Deployment", "Name", "Name must be unique");
        check("apps", "Deployment", "Odd", "");
        check("odd", "Odd", "Age", "CreationTimestamp");
    }
}
