//! Tables whose rows appear one after another, as `kubectl get --watch` prints them: the headings once.

use std::io::{self, Write};

use super::table;

/// A table that grows.
#[derive(Debug)]
pub(crate) struct GrowingTable {
    headings: Vec<&'static str>,
    /// The widths of the columns so far, in characters.
    widths: Vec<usize>,
    /// Whether the headings are printed.
    is_begun: bool,
    /// Whether messages are printed whole.
    is_whole: bool,
}

impl GrowingTable {
    /// Creates a table without rows.
    pub(crate) fn new(headings: Vec<&'static str>) -> Self {
        let widths = vec![0; headings.len()];
        Self { headings, widths, is_begun: false, is_whole: false }
    }

    /// Creates a table without rows that is about its messages.
    pub(crate) fn whole(headings: Vec<&'static str>) -> Self {
        Self { is_whole: true, ..Self::new(headings) }
    }

    /// Prints rows below those that were printed before. A column becomes wider if it has to.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub(crate) fn print(&mut self, rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let headings = self.headings.iter().zip(&self.widths);
        let headings: Vec<String> =
            headings.map(|(heading, width)| format!("{heading:<width$}", width = *width)).collect();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut text = Vec::new();
        match self.is_whole {
            true => table::print_whole(&mut text, &headings, rows)?,
            false => table::print(&mut text, &headings, rows)?,
        }
        let first_row = text.iter().position(|it| *it == b'\n').map_or(0, |end| end + 1);
        let start = if self.is_begun { first_row } else { 0 };
        self.is_begun = true;
        out.write_all(&text[start..])?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_printed_once_and_columns_stay_in_their_places() {
        let mut table = GrowingTable::new(vec!["NAME", "VERSION"]);
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let mut out = Vec::new();
        table.print(&[], &mut out).unwrap();
        table.print(&[row(["lantern", "1.0.0"]), row(["buoy", "2.0.0"])], &mut out).unwrap();
        table.print(&[row(["buoy", "2.1.0"])], &mut out).unwrap();
        table.print(&[row(["lighthouse", "1.0.0"])], &mut out).unwrap();
        table.print(&[row(["buoy", ""])], &mut out).unwrap();
        let expected = "\
NAME      VERSION
lantern   1.0.0
buoy      2.0.0
buoy      2.1.0
lighthouse   1.0.0
buoy
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
