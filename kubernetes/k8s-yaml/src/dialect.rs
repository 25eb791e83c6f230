//! What Kubernetes' parser reads otherwise than ours: comments without a blank before them, tabs, byte-order
//! marks within a text, escapes, directives.

use std::borrow::Cow;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, ScalarStyle, Span, StructureStyle};
use serde_json::Value;

/// The byte-order mark.
pub(super) const MARK: char = '\u{feff}';
/// Most bytes that are parsed again; each round eases a run of lines, or a comment.
const WORK_MAX: usize = 32 << 20;

/// A text in a form that our parser takes. Every byte stands where it stands in the original.
pub(super) struct Eased<'text> {
    original: &'text str,
    pub(super) text: Cow<'text, str>,
    /// What stands for byte-order marks within the text.
    pub(super) mark: Option<char>,
    /// Where the lines begin whose leading tabs were replaced, in order.
    pub(super) tabbed: Vec<usize>,
    work: usize,
}

/// What our parser refuses in a text, and where.
#[derive(Clone, Copy)]
pub(super) enum Strange {
    /// A comment that follows something without a blank.
    Comment(usize),
    /// Tabs at the beginning of a line.
    Tab(usize),
}

impl Strange {
    /// What an error at an offset is about; `None` if it is about something else.
    pub(super) fn of(kind: &ErrorKind, at: Option<usize>) -> Option<Self> {
        match kind {
            ErrorKind::CommentNotSeparated => at.map(Self::Comment),
            ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => at.map(Self::Tab),
            _ => None,
        }
    }
}

impl<'text> Eased<'text> {
    /// Replaces the byte-order marks behind the first character, which are part of what a text says.
    pub(super) fn new(text: &'text str) -> Self {
        let begin = text.chars().next().map_or(0, char::len_utf8);
        let (first, rest) = text.split_at(begin);
        // Characters for private use have as many bytes as the mark.
        let is_unused = |character: &char| !text.contains(*character);
        let mark =
            if rest.contains(MARK) { ('\u{e000}'..='\u{f8ff}').find(is_unused) } else { None };
        let eased = match mark {
            Some(mark) => Cow::Owned(format!("{first}{}", rest.replace(MARK, &mark.to_string()))),
            None => Cow::Borrowed(text),
        };
        Self { original: text, text: eased, mark, tabbed: Vec::new(), work: 0 }
    }

    /// Removes what our parser refuses; false when that would not help, or is no longer worth the work.
    pub(super) fn ease(&mut self, strange: Strange) -> bool {
        let (Strange::Comment(at) | Strange::Tab(at)) = strange;
        self.work += at;
        if self.work > WORK_MAX || !self.text.is_char_boundary(at) {
            return false;
        }
        match strange {
            Strange::Comment(_) => self.blank_comment(at),
            Strange::Tab(_) => self.blank_tabs(at),
        }
    }

    /// Replaces the tabs before an offset on its line, and those that the lines after it begin with.
    fn blank_tabs(&mut self, at: usize) -> bool {
        let mut begin = line_start(&self.text, at);
        let first = self.tabbed.len();
        while let Some(rest) = self.text.get(begin..) {
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if !rest[..blank].contains('\t') {
                break;
            }
            let next = rest[blank..].find('\n').map_or(rest.len(), |end| blank + end + 1);
            self.blank(begin..begin + blank);
            self.tabbed.push(begin);
            begin += next;
        }
        let changed = self.tabbed.len() > first;
        self.tabbed.sort_unstable();
        changed
    }

    /// Makes blanks of the comment that begins on the line of an offset, at it or behind it.
    fn blank_comment(&mut self, at: usize) -> bool {
        let rest = &self.text[at..];
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let Some(begin) = rest[..end].find('#') else { return false };
        self.blank(at + begin..at + end);
        true
    }

    /// Makes blanks of a range, in place: a text may have many.
    fn blank(&mut self, range: Range<usize>) {
        let blanks = " ".repeat(range.len());
        self.text.to_mut().replace_range(range, &blanks);
    }

    /// The number of the line, from 0, that Kubernetes' parser refuses in a document of a value, and why.
    pub(super) fn refused(&self, places: &Places, root: &Value) -> Option<(usize, &'static str)> {
        self.tab(places, root.is_string()).or_else(|| self.quoted(places))
    }

    /// A tab where a block needs spaces; a document that is a text has no block.
    fn tab(&self, places: &Places, is_text: bool) -> Option<(usize, &'static str)> {
        if !self.original.contains('\t') {
            return None;
        }
        let mut at = 0;
        // Where the lines so far end, but for blanks.
        let mut said = 0;
        for (number, line) in self.original.split_inclusive('\n').enumerate() {
            let is_eased = self.tabbed.binary_search(&at).is_ok();
            let is_free = places.flowing(at) && !places.is_after_plain(said)
                || is_text && places.within_text(at);
            if (is_eased || line.starts_with('\t')) && !is_free {
                return Some((number, "found a tab character that violates indentation"));
            }
            let begin = at + line.len() - line.trim_start_matches(' ').len();
            let is_tab = begin > at && self.original[begin..].starts_with('\t');
            if is_tab && places.begins_block(begin, said) {
                return Some((number, "found character that cannot start any token"));
            }
            let mut entry = &self.original[begin..];
            while let Some(rest) = entry.strip_prefix("- ") {
                entry = rest.trim_start_matches(' ');
            }
            if entry.starts_with("-\t") && !places.flowing(begin) && !places.within_text(begin) {
                return Some((number, "found character that cannot start any token"));
            }
            let is_end = line.starts_with("---") || line.starts_with("...");
            if is_end && at > 0 && !places.flowing(at) {
                // What follows is another document.
                return None;
            }
            let end = line.trim_end_matches([' ', '\t', '\r', '\n']).len();
            said = if end > 0 { at + end } else { said };
            at += line.len();
        }
        None
    }

    /// In a quoted scalar, an escape of YAML 1.2, half of a character, or what separates documents.
    fn quoted(&self, places: &Places) -> Option<(usize, &'static str)> {
        places.quoted.iter().find_map(|range| {
            let text = self.original.get(range.clone())?;
            let escape = text.strip_prefix('"').and_then(refused_escape);
            let indicator = text.split('\n').skip(1).any(is_indicator);
            let why = escape.or(indicator.then_some("found unexpected document indicator"))?;
            Some((self.original[..range.start].matches('\n').count(), why))
        })
    }
}

/// Whether a line begins or ends a document.
fn is_indicator(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r']))
}

/// Where the line of an offset begins.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Why the content of a scalar in double quotes is refused for one of its escapes.
fn refused_escape(text: &str) -> Option<&'static str> {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at + 1..];
        let digits = rest.strip_prefix('u').and_then(|digits| digits.get(..4));
        if rest.starts_with('/') {
            return Some("found unknown escape character");
        }
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if unit.is_some_and(|unit| (0xd800..0xe000).contains(&unit)) {
            return Some("found invalid Unicode character escape code");
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    None
}

/// The number of a line, from 0, with a directive that Kubernetes' parser refuses, and why.
pub(super) fn refused_directive(text: &str) -> Option<(usize, &'static str)> {
    for (number, line) in text.lines().enumerate() {
        let Some(directive) = line.strip_prefix('%') else {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            return None;
        };
        let mut words = directive.split_whitespace();
        match (words.next(), words.next()) {
            (Some("YAML"), Some("1.1")) | (Some("TAG"), _) => {}
            (Some("YAML"), _) => return Some((number, "found incompatible YAML document")),
            _ => return Some((number, "found unknown directive name")),
        }
    }
    None
}

/// Where what may go on over several lines stands in a text.
#[derive(Default)]
pub(super) struct Places {
    /// Quoted scalars.
    pub(super) quoted: Vec<Range<usize>>,
    /// Block scalars, and plain ones of several lines.
    texts: Vec<Range<usize>>,
    /// Flow collections that stand in no other.
    flow: Vec<Range<usize>>,
    /// Where plain scalars end.
    plain: Vec<usize>,
    /// Whether there is a block collection.
    has_block: bool,
    /// How many collections are open, from a flow collection on.
    open: usize,
    /// Where the outermost of them begins.
    begin: usize,
}

impl Places {
    /// Notes where an event stands.
    pub(super) fn note(&mut self, event: &Event<'_>, span: &Span) {
        let Some(range) = span.byte_range() else { return };
        if let Event::Scalar(_, ScalarStyle::Plain, ..) = event
            && !range.is_empty()
        {
            self.plain.push(range.end);
        }
        match event {
            Event::Scalar(_, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted, ..) => {
                self.quoted.push(range);
            }
            Event::Scalar(_, style, ..)
                if *style != ScalarStyle::Plain || span.start.line() != span.end.line() =>
            {
                self.texts.push(range);
            }
            Event::SequenceStart(style, ..) | Event::MappingStart(style, ..) => {
                if self.open == 0 && *style == StructureStyle::Flow {
                    (self.begin, self.open) = (range.start, 1);
                } else if self.open > 0 {
                    self.open += 1;
                } else {
                    self.has_block = true;
                }
            }
            Event::SequenceEnd | Event::MappingEnd if self.open > 0 => {
                self.open -= 1;
                if self.open == 0 {
                    self.flow.push(self.begin..range.end);
                }
            }
            _ => {}
        }
    }

    /// Whether an offset is within a quoted scalar or a flow collection, where indentation means nothing.
    fn flowing(&self, at: usize) -> bool {
        contains(&self.quoted, at) || contains(&self.flow, at)
    }

    /// Whether a line is the next one after a plain scalar within a block, which may go on there; `said` is
    /// where the text before the line ends, but for blanks.
    fn is_after_plain(&self, said: usize) -> bool {
        self.has_block && self.ends_plain(said)
    }

    fn ends_plain(&self, at: usize) -> bool {
        self.plain.binary_search(&at).is_ok()
    }

    /// Whether a tab at an offset, with only blanks before it on its line, stands where something new may
    /// begin in a block: it is no part of a scalar or of a flow collection.
    fn begins_block(&self, at: usize, said: usize) -> bool {
        !self.flowing(at) && !self.within_text(at) && !self.ends_plain(said)
    }

    fn within_text(&self, at: usize) -> bool {
        contains(&self.texts, at)
    }
}

/// Whether one of several ranges, which come in order, contains an offset.
fn contains(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.start <= at);
    next > 0 && at < ranges[next - 1].end
}
