//! Where documents end: at lines that begin with `---`, whatever stands around them.

/// A piece of a text between separators.
pub(super) struct Chunk<'text> {
    /// The text.
    pub(super) text: &'text str,
    /// Its first line, from 1.
    pub(super) line: usize,
}

/// Cuts a text at lines that hold `---` and at most a comment. Such a line can be part of a block
/// scalar only when it is indented, and then it does not begin with `---`.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = Some(text);
    let mut line = 1;
    std::iter::from_fn(move || {
        let current = rest?;
        let chunk_line = line;
        let Some(separator) = find_separator(current) else {
            rest = None;
            return Some(Chunk { text: current, line: chunk_line });
        };
        let (before, from) = current.split_at(separator);
        let after = from.find('\n').map_or("", |end| &from[end + 1..]);
        line += count_lines(before) + 1;
        rest = Some(after);
        Some(Chunk { text: before, line: chunk_line })
    })
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Where the next separating line begins.
fn find_separator(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = text.get(from..)?.find("---") {
        let at = from + found;
        let begins_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
        if begins_line && is_separator_tail(&text[at + 3..]) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Whether nothing but blanks or a comment stands before the end of the line.
fn is_separator_tail(text: &str) -> bool {
    let line = text.split_once('\n').map_or(text, |(line, _)| line).trim();
    line.is_empty() || line.starts_with('#')
}
