//! Tables as kubectl prints them: columns three spaces apart, headings in capitals.
//!
//! On a terminal that is too narrow for a table, digests are shortened in their middle, and then messages in the
//! last column at their end, unless the table is about them. Names never are, and neither is anything that is not
//! printed to a terminal.

use std::io::{self, Write};
use std::sync::OnceLock;

use plimsoll_resolve::printable::on_one_line;

/// What is between two columns.
const GAP: &str = "   ";
/// Algorithms of digests, with what follows them.
const ALGORITHMS: [&str; 2] = ["sha256:", "sha512:"];
/// Fewest digits of what is a digest.
const DIGITS_MIN: usize = 32;
/// Digits at the beginning of a shortened digest.
const DIGITS_BEFORE: usize = 6;
/// Digits at its end.
const DIGITS_AFTER: usize = 5;
/// The heading of a last column that is shortened.
const MESSAGE: &str = "MESSAGE";
/// The minimum width that a message is shortened to, in characters.
const MESSAGE_MIN: usize = 20;

/// Width of the terminal that tables are printed to, in characters; not set if they are printed to
/// something else.
static WIDTH: OnceLock<usize> = OnceLock::new();

/// Has tables fit the terminal of standard output, if it is one.
pub(crate) fn fit_to_terminal() {
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stdout()) {
        WIDTH.get_or_init(|| usize::from(width.0));
    }
}

/// Prints a table; cells of the last column may be of any length.
///
/// # Errors
///
/// When the output cannot be written.
pub fn print(out: &mut dyn Write, headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    out.write_all(brief(headings, rows, WIDTH.get().copied()).as_bytes())
}

/// Prints a table that is about its messages, which are printed whole.
///
/// # Errors
///
/// When the output cannot be written.
pub fn print_whole(out: &mut dyn Write, headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    out.write_all(text(headings, rows, WIDTH.get().copied()).as_bytes())
}

/// Formats a table with whole messages for a terminal of some width, or of any without one.
fn text(headings: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    aligned(headings, &fitted(headings, rows, width))
}

/// Formats a table with messages that fit a terminal of some width.
fn brief(headings: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut rows = fitted(headings, rows, width);
    let widths = widths(headings, &rows);
    if let Some(width) = width.filter(|width| total(&widths) > *width)
        && let Some((heading, others)) = headings.split_last()
        && heading.trim_end() == MESSAGE
    {
        let others = total(&widths[..others.len()]) + GAP.len();
        let room = width.saturating_sub(others).max(MESSAGE_MIN);
        let messages = rows.iter_mut().filter_map(|row| row.get_mut(headings.len() - 1));
        messages.for_each(|it| *it = cut(it, room));
    }
    aligned(headings, &rows)
}

/// Cuts a text that is longer than some number of characters at its end.
fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Returns the cells of a table, with shortened digests if the terminal is too narrow.
fn fitted(headings: &[&str], rows: &[Vec<String>], width: Option<usize>) -> Vec<Vec<String>> {
    // A cell may be text of others: it stays in its place.
    let cells =
        |row: &Vec<String>| -> Vec<String> { row.iter().map(|cell| on_one_line(cell)).collect() };
    let mut rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    if width.is_some_and(|width| total(&widths(headings, &rows)) > width) {
        rows.iter_mut().flatten().for_each(|cell| *cell = shortened(cell));
    }
    rows
}

/// Formats cells as columns.
fn aligned(headings: &[&str], rows: &[Vec<String>]) -> String {
    let widths = widths(headings, rows);
    let headings: Vec<String> = headings.iter().map(|&heading| heading.to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&headings).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}{GAP}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The width of each column.
fn widths(headings: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// The width of all columns together.
fn total(widths: &[usize]) -> usize {
    let gaps = widths.len().saturating_sub(1) * GAP.len();
    widths.iter().sum::<usize>() + gaps
}

/// A text whose digests have lost their middle: `sha256:094af2…fec75`.
fn shortened(cell: &str) -> String {
    let mut short = String::new();
    let mut rest = cell;
    while let Some(colon) = rest.find(':') {
        let (before, after) = rest.split_at(colon + 1);
        short.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (digest, behind) = after.split_at(digits);
        if digits >= DIGITS_MIN && ALGORITHMS.iter().any(|it| before.ends_with(it)) {
            let (begin, end) = (&digest[..DIGITS_BEFORE], &digest[digits - DIGITS_AFTER..]);
            short.push_str(&format!("{begin}…{end}"));
        } else {
            short.push_str(digest);
        }
        rest = behind;
    }
    short.push_str(rest);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_lose_their_middle_where_a_terminal_is_too_narrow() {
        let digest = format!("094af2{}fec75", "0".repeat(53));
        let rows = [
            vec!["crane-operator".to_owned(), format!("quay.io/harbour/crane@sha256:{digest}")],
            vec!["lamp".to_owned(), "quay.io/harbour/lamp:v1".to_owned()],
        ];
        let whole = format!(
            "NAME             IMAGE\n\
             crane-operator   quay.io/harbour/crane@sha256:{digest}\n\
             lamp             quay.io/harbour/lamp:v1\n"
        );
        let headings = ["NAME", "IMAGE"];
        assert_eq!(text(&headings, &rows, None), whole);
        assert_eq!(text(&headings, &rows, Some(110)), whole);
        let short = "NAME             IMAGE\n\
                     crane-operator   quay.io/harbour/crane@sha256:094af2…fec75\n\
                     lamp             quay.io/harbour/lamp:v1\n";
        assert_eq!(text(&headings, &rows, Some(109)), short);
        assert_eq!(text(&headings, &rows, Some(10)), short, "names stay whole");
    }

    #[test]
    fn messages_are_cut_where_a_terminal_is_too_narrow() {
        let row = |name: &str, message: &str| vec![name.to_owned(), message.to_owned()];
        let rows = [
            row("crane", "v1.2.5 is installed"),
            row("lamp", "waits: lamp depends on oil >=1.0.0"),
        ];
        let headings = ["NAME", "MESSAGE"];
        let whole = "NAME    MESSAGE\n\
                     crane   v1.2.5 is installed\n\
                     lamp    waits: lamp depends on oil >=1.0.0\n";
        let cut = "NAME    MESSAGE\n\
                   crane   v1.2.5 is installed\n\
                   lamp    waits: lamp depends on…\n";
        let least = "NAME    MESSAGE\n\
                     crane   v1.2.5 is installed\n\
                     lamp    waits: lamp depends…\n";
        for (width, expected) in
            [(None, whole), (Some(42), whole), (Some(32), cut), (Some(28), least), (Some(9), least)]
        {
            assert_eq!(brief(&headings, &rows, width), expected, "{width:?}");
            assert_eq!(text(&headings, &rows, width), whole, "{width:?}");
        }
        let others = ["NAME", "IMAGE"];
        assert_eq!(brief(&others, &rows, Some(9)), text(&others, &rows, None));
    }

    #[test]
    fn only_digests_are_shortened() {
        let digest = format!("{}b", "a".repeat(63));
        for (cell, expected) in [
            (format!("sha256:{digest}"), "sha256:aaaaaa…aaaab".to_owned()),
            (format!("a:sha512:{digest} b"), "a:sha512:aaaaaa…aaaab b".to_owned()),
            (format!("quay.io:443/crane:{digest}"), format!("quay.io:443/crane:{digest}")),
            ("sha256:cafe".to_owned(), "sha256:cafe".to_owned()),
            ("12:30:00".to_owned(), "12:30:00".to_owned()),
        ] {
            assert_eq!(shortened(&cell), expected);
        }
    }
}
