//! Quoted scalars whose later lines are indented less than YAML 1.2 demands.
//!
//! Kubernetes' parser takes them, ours refuses them. Indentation within a quoted scalar means
//! nothing, so more of it makes the text acceptable without changing what it says.

use std::borrow::Cow;
use std::ops::Range;

/// Most bytes that are parsed again where a guess at all scalars fails. Each round mends all lines up to
/// the next one with a quote, and parses the text up to the next line to be mended.
const WORK_MAX: usize = 32 << 20;
/// Most bytes that mending adds to a text.
const GROWTH_MAX: usize = 16 << 20;
/// Columns that a mended line is moved by, which brings it to the right of any block it can stand
/// in.
const INDENT: usize = 400;

/// A text that is being mended.
pub(super) struct Mending<'text> {
    pub(super) text: Cow<'text, str>,
    /// Up to where it is in order.
    mended: usize,
    work: usize,
    growth: usize,
}

impl<'text> Mending<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { text: Cow::Borrowed(text), mended: 0, work: 0, growth: 0 }
    }

    /// Moves the line of a quoted scalar whose first character, at an offset, stands too far to
    /// the left, and those after it up to the first that holds a quote. False when that would not
    /// help, or is no longer worth the work.
    pub(super) fn indent_from(&mut self, offset: usize) -> bool {
        self.work += offset;
        let goes_on = offset > self.mended && self.text.is_char_boundary(offset);
        if !goes_on || self.work > WORK_MAX {
            return false;
        }
        let (before, after) = self.text.split_at(offset);
        let mut mended = String::with_capacity(self.text.len() + INDENT);
        mended.push_str(before);
        let mut mending = true;
        for (number, line) in after.split_inclusive('\n').enumerate() {
            if mending && !(number > 0 && is_blank(line)) {
                self.growth += INDENT;
                if self.growth > GROWTH_MAX {
                    return false;
                }
                mended.extend(std::iter::repeat_n(' ', INDENT));
                self.mended = mended.len();
                // A line without quotes cannot end the scalar: the next one belongs to it, too.
                mending = !line.contains(['\'', '"']);
            }
            mended.push_str(line);
        }
        self.text = Cow::Owned(mended);
        true
    }
}

/// A text in which all later lines of quoted scalars are moved at once, judged by how lines look. What was
/// moved proves right or wrong once the text is parsed.
pub(super) struct Guess {
    pub(super) text: String,
    /// Where the moved lines begin.
    moved: Vec<usize>,
}

impl Guess {
    /// Moves the lines; `None` when that makes the text too large.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut guess = Self { text: String::with_capacity(text.len()), moved: Vec::new() };
        let mut open = None;
        // Columns before the line that began a block scalar.
        let mut block = None;
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start_matches(' ').len();
            if let Some(quote) = open {
                if !is_blank(line) {
                    guess.moved.push(guess.text.len());
                    guess.text.extend(std::iter::repeat_n(' ', INDENT));
                }
                open = Some(quote).filter(|quote| !closes(line, *quote));
            } else if block.is_none_or(|begun| !is_blank(line) && indent <= begun) {
                block = Some(indent).filter(|_| begins_block_scalar(line));
                open = opened_quote(line);
            }
            guess.text.push_str(line);
            if guess.moved.len() * INDENT > GROWTH_MAX {
                return None;
            }
        }
        Some(guess)
    }

    /// Whether all that was moved stands within quoted scalars, whose places in the text come in order.
    pub(super) fn holds(&self, quoted: &[Range<usize>]) -> bool {
        let mut ranges = quoted.iter().peekable();
        self.moved.iter().all(|at| {
            while ranges.next_if(|range| range.end <= *at).is_some() {}
            ranges.peek().is_some_and(|range| range.start < *at)
        })
    }
}

fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t', '\r', '\n']).is_empty()
}

/// Whether a line ends with the header of a block scalar.
fn begins_block_scalar(line: &str) -> bool {
    let last = line.trim_end().rsplit(' ').next().unwrap_or_default();
    last.starts_with(['|', '>']) && last.len() <= 3
}

/// The quote that the value of a line begins with and that the line does not close.
fn opened_quote(line: &str) -> Option<char> {
    let rest = line.trim_start_matches([' ', '-', '?']);
    let value = if rest.starts_with(['\'', '"']) {
        rest
    } else {
        rest.split_once(": ").filter(|_| !rest.starts_with('#'))?.1.trim_start()
    };
    let quote = value.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    (!closes(&value[1..], quote)).then_some(quote)
}

/// Whether a quoted scalar ends within a text.
fn closes(text: &str, quote: char) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\\' && quote == '"' {
            characters.next();
        } else if character == quote && (quote == '"' || characters.next_if_eq(&quote).is_none()) {
            return true;
        }
    }
    false
}
