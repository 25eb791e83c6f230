//! The columns of the built-in kinds, from `data/columns.tsv` and `data/cells.tsv`.
//!
//! The first file holds what a real server answers as `columnDefinitions` and is generated; the
//! second one says what each cell shows and is written by hand. Their own headers describe the
//! formats. Both are parsed when the first table is requested.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::expression::CellExpression;
use crate::semantics::registry::ApiResource;

const COLUMNS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/columns.tsv"));
const CELLS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/cells.tsv"));

/// The name of the rows for kinds without rows of their own.
const ANY_KIND: &str = "*";

/// One column of the table of a built-in kind.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// The OpenAPI type of its cells: `string`, `integer`, `boolean` or `date`.
    pub(super) column_type: &'static str,
    /// `name` for the column that identifies the object; empty for most.
    pub(super) format: &'static str,
    /// Above zero only the wide form shows the column.
    pub(super) priority: i64,
    pub(super) description: String,
    pub(super) cell: CellExpression,
}

/// Columns under `KIND` or `GROUP/KIND`.
type Tables = BTreeMap<&'static str, Vec<Column>>;

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    parse(COLUMNS, CELLS).expect("the tests parse the files of columns and cells")
});

/// The columns of a built-in kind.
pub(super) fn columns_of(resource: &ApiResource) -> &'static [Column] {
    let kind = match resource.group.as_str() {
        "" => resource.kind.clone(),
        group => format!("{group}/{}", resource.kind),
    };
    TABLES.get(kind.as_str()).or_else(|| TABLES.get(ANY_KIND)).map_or(&[], Vec::as_slice)
}

/// The column that every table of custom objects begins with.
pub(super) fn name_column() -> &'static Column {
    &TABLES[ANY_KIND][0]
}

/// The rows of a file, without comments.
fn rows(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|row| !row.starts_with('#'))
}

fn parse(columns: &'static str, cells: &'static str) -> Result<Tables, String> {
    let cells = parse_cells(cells)?;
    let mut descriptions: BTreeMap<&str, &str> = BTreeMap::new();
    let mut tables = Tables::new();
    for row in rows(columns) {
        let fields: Vec<&str> = row.split('\t').collect();
        let [kind, name, column_type, format, priority, description] = fields[..] else {
            return Err(format!("{row:?} has other than six fields"));
        };
        let description = match description {
            "-" => "",
            "=" => *descriptions.get(name).ok_or(format!("{row:?} repeats no description"))?,
            own => {
                descriptions.entry(name).or_insert(own);
                own
            }
        };
        let cell = cells.get(&(kind, name)).or_else(|| cells.get(&(ANY_KIND, name)));
        let cell = cell.ok_or(format!("no cell for column {name:?} of {kind}"))?;
        tables.entry(kind).or_default().push(Column {
            name,
            column_type,
            format: if format == "-" { "" } else { format },
            priority: priority.parse().map_err(|_| format!("{row:?} has no priority"))?,
            description: description.replace("\\n", "\n"),
            cell: cell.clone(),
        });
    }
    Ok(tables)
}

/// Cells by kind and column.
fn parse_cells(
    file: &'static str,
) -> Result<BTreeMap<(&'static str, &'static str), CellExpression>, String> {
    let mut cells = BTreeMap::new();
    for row in rows(file) {
        let mut fields = row.splitn(3, '\t');
        let (Some(kind), Some(name), Some(cell)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("{row:?} has fewer than three fields"));
        };
        let cell = CellExpression::parse(cell).ok_or(format!("{row:?} holds no cell"))?;
        if cells.insert((kind, name), cell).is_some() {
            return Err(format!("{row:?} is a second cell of this column"));
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::table::expression::FUNCTIONS;

    #[test]
    fn every_column_has_a_cell() {
        assert_eq!(parse(COLUMNS, CELLS).err(), None);
    }

    #[test]
    fn every_cell_has_a_column() {
        let columns: BTreeSet<(&str, &str)> = rows(COLUMNS)
            .filter_map(|row| {
                let mut fields = row.split('\t');
                Some((fields.next()?, fields.next()?))
            })
            .collect();
        for (kind, name) in parse_cells(CELLS).unwrap().into_keys() {
            let is_used = match kind {
                ANY_KIND => columns.iter().any(|(_, column)| *column == name),
                _ => columns.contains(&(kind, name)),
            };
            assert!(is_used, "{kind} has no column {name:?}");
        }
    }

    #[test]
    fn every_kind_is_built_in() {
        let built_in: BTreeSet<String> = k8s_schema::builtin::resources()
            .iter()
            .map(|resource| match resource.group.as_str() {
                "" => resource.kind.clone(),
                group => format!("{group}/{}", resource.kind),
            })
            .collect();
        for kind in TABLES.keys().filter(|kind| **kind != ANY_KIND) {
            assert!(built_in.contains(*kind), "{kind}");
        }
    }

    #[test]
    fn every_function_of_cells_is_used() {
        let used: BTreeSet<&str> = rows(CELLS)
            .filter_map(|row| Some(row.rsplit('\t').next()?.split_once('(')?.0))
            .collect();
        let known: BTreeSet<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, used);
        assert_eq!(known.len(), FUNCTIONS.len(), "a name is there twice");
    }

    #[test]
    fn columns_are_described_as_a_real_server_describes_them() {
        let check = |kind: &str, column: &str, beginning: &str| {
            let found = TABLES[kind].iter().find(|found| found.name == column).unwrap();
            assert!(found.description.starts_with(beginning), "{}", found.description);
        };
        check("apps/Deployment", "Ready", "Number of the pod");
        check("apps/Deployment", "Name", "Name must be unique");
        check("ConfigMap", "Age", "CreationTimestamp");
        check("*", "Created At", "CreationTimestamp");
    }
}
