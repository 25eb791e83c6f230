//! Tables as kubectl prints them: columns three spaces apart, headings in capitals.

use std::io::{self, Write};

use plimsoll_resolve::printable::on_one_line;

/// Prints a table; cells of the last column may be of any length.
///
/// # Errors
///
/// When the output cannot be written.
pub fn print(out: &mut dyn Write, headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    // A cell may be text of others: it stays in its place.
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| on_one_line(cell)).collect()).collect();
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let headings: Vec<String> = headings.iter().map(|&heading| heading.to_owned()).collect();
    for row in std::iter::once(&headings).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}   "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
