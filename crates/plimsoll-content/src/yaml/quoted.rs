//! Quoted scalars whose later lines are indented less than YAML 1.2 demands.
//!
//! Kubernetes' parser takes them, ours refuses them. Indentation within a quoted scalar means
//! nothing, so more of it makes the text acceptable without changing what it says.

use std::borrow::Cow;

/// Most bytes that are parsed again because of such scalars: each round mends all lines up to the
/// next one with a quote, so a few are usual and thousands would be an attack.
const WORK_MAX: usize = 64 << 20;
/// Columns that a mended line begins at, which is to the right of any block it can stand in.
const INDENT: usize = 400;

/// A text that is being mended.
pub(super) struct Mending<'text> {
    pub(super) text: Cow<'text, str>,
    work: usize,
}

impl<'text> Mending<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { text: Cow::Borrowed(text), work: 0 }
    }

    /// Indents the line (from 1) on which a quoted scalar goes on too far to the left, and those
    /// after it up to the first that holds a quote. False when the work is no longer worth it.
    pub(super) fn indent_from(&mut self, line: usize) -> bool {
        self.work += self.text.len();
        if self.work > WORK_MAX {
            return false;
        }
        let mut mended = String::with_capacity(self.text.len() + INDENT);
        let mut mending = false;
        for (number, text) in (1..).zip(self.text.split_inclusive('\n')) {
            mending |= number == line;
            if mending && !text.trim().is_empty() {
                mended.extend(std::iter::repeat_n(' ', INDENT));
                // A line without quotes cannot end the scalar: the next one belongs to it, too.
                mending = !text.contains(['\'', '"']);
            }
            mended.push_str(text);
        }
        self.text = Cow::Owned(mended);
        true
    }
}
