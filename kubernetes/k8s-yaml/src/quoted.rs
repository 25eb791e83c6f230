//! Quoted scalars whose later lines are indented less than YAML 1.2 demands.
//!
//! Kubernetes' parser takes them, ours refuses them. Indentation within a quoted scalar means
//! nothing, so more of it makes the text acceptable without changing what it says.

use std::borrow::Cow;

/// Most bytes that are parsed again. Each round mends all lines up to the next one with a quote, and
/// parses the text up to the next line to be mended: a thousand rounds in the largest real document.
const WORK_MAX: usize = 256 << 20;
/// Columns that a mended line is moved by, which brings it to the right of any block it can stand
/// in.
const INDENT: usize = 400;

/// A text that is being mended.
pub(super) struct Mending<'text> {
    pub(super) text: Cow<'text, str>,
    /// Up to where it is in order.
    mended: usize,
    work: usize,
}

impl<'text> Mending<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { text: Cow::Borrowed(text), mended: 0, work: 0 }
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
            let is_blank = number > 0 && line.trim_matches([' ', '\t', '\r', '\n']).is_empty();
            if mending && !is_blank {
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
