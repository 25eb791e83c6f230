//! One file of a catalog, in pieces: JSON documents one after the other, or YAML documents.
//!
//! # Guarantees
//!
//! A document that cannot be read does not hide the next one: reading goes on at the next line
//! that begins a document. Memory is bounded by the largest document, time by the file's length.

use super::CatalogLoader;
use crate::catalog::defect::DefectCode;
use crate::catalog::document::{CarefulDocument, Document, Head};
use crate::catalog::pending::DocumentPosition;
use crate::yaml::{self, YamlWarningKind};
use serde_json::value::RawValue;

/// Most bytes of one document.
pub const DOCUMENT_SIZE_MAX: usize = 32 << 20;

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Json,
    Yaml,
}

/// Reads a file of a catalog piece by piece.
#[derive(Debug)]
pub struct FileLoader<'l> {
    loader: &'l mut CatalogLoader,
    file: u32,
    /// What has not been taken yet.
    buffer: Vec<u8>,
    /// The line on which it begins, from 1.
    line: usize,
    form: Option<FileFormat>,
    /// How long `buffer` must be before it is worth looking at it again.
    wait_for: usize,
    /// Whether everything up to the next beginning of a document is left out.
    is_lost: bool,
}

impl<'l> FileLoader<'l> {
    pub(super) fn new(loader: &'l mut CatalogLoader, file: u32, line: usize) -> Self {
        Self { loader, file, buffer: Vec::new(), line, form: None, wait_for: 0, is_lost: false }
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= self.wait_for {
            self.drain(false);
        }
    }

    /// The file ends here.
    pub fn finish(mut self) {
        self.drain(true);
    }

    fn drain(&mut self, is_end: bool) {
        let buffer = std::mem::take(&mut self.buffer);
        if self.form.is_none() {
            let text = buffer.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&buffer);
            let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
            self.form =
                first.map(|byte| if *byte == b'{' { FileFormat::Json } else { FileFormat::Yaml });
        }
        let taken = match self.form {
            None => 0,
            Some(FileFormat::Json) => self.drain_json(&buffer, is_end),
            Some(FileFormat::Yaml) => self.drain_yaml(&buffer, is_end),
        };
        self.buffer = buffer;
        self.buffer.drain(..taken);
        if taken > 0 || self.buffer.len() < DOCUMENT_SIZE_MAX {
            // What is incomplete is looked at again when there is twice as much of it, so that a
            // long document is not read over and over.
            self.wait_for = self.buffer.len() * 2;
            return;
        }
        let place = self.place(0);
        let text = format!("a document of more than {} MiB", DOCUMENT_SIZE_MAX >> 20);
        self.loader.defect(place, "", DefectCode::TooLarge, text);
        self.line += lines(&self.buffer);
        self.buffer.clear();
        self.is_lost = true;
        self.wait_for = 0;
    }

    fn place(&self, offset: usize) -> DocumentPosition {
        let line = u32::try_from(self.line + offset).unwrap_or(u32::MAX);
        DocumentPosition { file: self.file, line }
    }

    /// Takes the JSON documents at the beginning of the buffer; how many bytes that was.
    fn drain_json(&mut self, buffer: &[u8], is_end: bool) -> usize {
        let mut at =
            if self.line == 1 && buffer.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        loop {
            if self.is_lost {
                match resume(buffer, at) {
                    Some(found) => {
                        self.line += lines(&buffer[at..found]);
                        (at, self.is_lost) = (found, false);
                    }
                    // The last byte may be the end of a line.
                    None => return self.skip(buffer, at, buffer.len().saturating_sub(1).max(at)),
                }
            }
            let blank = buffer[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.line += lines(&buffer[at..at + blank]);
            at += blank;
            let rest = &buffer[at..];
            if rest.is_empty() {
                return at;
            }
            if rest.starts_with(b"---") {
                let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return at };
                self.line += 1;
                at += end + 1;
                continue;
            }
            match self.json(rest, is_end) {
                Some(taken) => {
                    self.line += lines(&rest[..taken]);
                    at += taken;
                }
                None => return at,
            }
        }
    }

    fn skip(&mut self, buffer: &[u8], from: usize, to: usize) -> usize {
        self.line += lines(&buffer[from..to]);
        to
    }

    /// Takes one JSON document; `None` when it is not complete.
    fn json(&mut self, rest: &[u8], is_end: bool) -> Option<usize> {
        let place = self.place(0);
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Document<'_>>();
        match stream.next()? {
            Ok(document) => {
                let end = stream.byte_offset();
                self.loader.document(document, place);
                Some(end)
            }
            Err(error) if error.is_eof() && !is_end => None,
            Err(error) if error.is_data() => {
                let mut stream =
                    serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
                match stream.next()? {
                    Ok(raw) => {
                        let end = stream.byte_offset();
                        self.misshapen(raw.get(), &error);
                        Some(end)
                    }
                    Err(error) if error.is_eof() && !is_end => None,
                    Err(error) => Some(self.malformed(rest, &error)),
                }
            }
            Err(error) => Some(self.malformed(rest, &error)),
        }
    }

    /// A document that is JSON, but not of the form of its schema.
    fn misshapen(&mut self, text: &str, error: &serde_json::Error) {
        if let Ok(document) = serde_json::from_str::<CarefulDocument<'_>>(text) {
            // One of its properties has another form than its type has.
            let place = self.place(0);
            return self.loader.document(document.into(), place);
        }
        let head = serde_json::from_str::<Head<'_>>(text).unwrap_or_default();
        let schema = head.schema.unwrap_or_default();
        let name = head.name.unwrap_or_default();
        let known = ["", "olm.package", "olm.channel", "olm.bundle", "olm.deprecations"];
        if !known.contains(&&*schema) {
            return;
        }
        let package = head.package.unwrap_or_default();
        let package = if &*schema == "olm.package" { &*name } else { &*package };
        let place = self.place(error.line().saturating_sub(1));
        let message = without_place(error);
        self.loader.lost(&schema, name.borrowed(), package, place, &message);
    }

    /// Text that is not JSON: goes on at the next line that begins a document.
    fn malformed(&mut self, rest: &[u8], error: &serde_json::Error) -> usize {
        // In column 0 stands the end of the line before.
        let line = error.line().saturating_sub(usize::from(error.column() == 0));
        let place = self.place(line.saturating_sub(1));
        let message = format!("not JSON: {}", without_place(error));
        self.loader.defect(place, "", DefectCode::Syntax, message);
        self.is_lost = true;
        let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let before = error.line().checked_sub(2).and_then(|line| ends.nth(line));
        // The line of the error may begin a document, unless it is the first.
        before.map_or(1, |(end, _)| end.max(1)).min(rest.len())
    }

    /// Takes the YAML documents at the beginning of the buffer; how many bytes that was.
    fn drain_yaml(&mut self, buffer: &[u8], is_end: bool) -> usize {
        let end = if is_end { Some(buffer.len()) } else { last_separator(buffer) };
        let Some(end) = end.filter(|end| *end > 0) else { return 0 };
        let from = if std::mem::take(&mut self.is_lost) {
            last_separator(&buffer[..end]).unwrap_or(end)
        } else {
            0
        };
        match std::str::from_utf8(&buffer[from..end]) {
            Ok(text) => self.yaml(text),
            Err(error) => {
                let before = lines(&buffer[from..from + error.valid_up_to()]);
                let place = self.place(before);
                self.loader.defect(place, "", DefectCode::Syntax, "not UTF-8");
            }
        }
        self.line += lines(&buffer[..end]);
        end
    }

    fn yaml(&mut self, text: &str) {
        for document in yaml::parse(text) {
            let place = self.place(document.line - 1);
            let value = match document.value {
                Ok(serde_json::Value::Null) => continue,
                Ok(value) => value,
                Err(error) => {
                    let place = self.place(error.line - 1);
                    self.loader.defect(place, "", DefectCode::Syntax, error.to_string());
                    continue;
                }
            };
            let json = value.to_string();
            let head = serde_json::from_str::<Head<'_>>(&json).unwrap_or_default();
            let package = head.package.or(head.name).unwrap_or_default();
            for note in document.notes {
                let code = match note.oddity {
                    YamlWarningKind::DuplicateKey(_) | YamlWarningKind::DuplicateScalar(_) => {
                        DefectCode::DuplicateKey
                    }
                    YamlWarningKind::IgnoredText => DefectCode::Syntax,
                };
                let place = note.line.map_or(place, |line| self.place(line - 1));
                self.loader.defect(place, &package, code, note.oddity.to_string());
            }
            match serde_json::from_str(&json) {
                Ok(read) => self.loader.document(read, place),
                Err(error) => {
                    let line = std::mem::replace(&mut self.line, place.line as usize);
                    self.misshapen(&json, &error);
                    self.line = line;
                }
            }
        }
    }
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Where the next line begins that begins with `{`, not before `from`.
fn resume(buffer: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let end = at + buffer.get(at..)?.iter().position(|byte| *byte == b'\n')?;
        if *buffer.get(end + 1)? == b'{' {
            return Some(end + 1);
        }
        at = end + 1;
    }
}

/// Where the last line of `---` begins.
fn last_separator(buffer: &[u8]) -> Option<usize> {
    let mut to = buffer.len();
    loop {
        let found = buffer[..to].windows(4).rposition(|window| window == b"\n---")? + 1;
        let line = &buffer[found + 3..];
        let end = line.iter().position(|byte| *byte == b'\n');
        if let Some(end) = end {
            let tail = line[..end].trim_ascii();
            if tail.is_empty() || tail.starts_with(b"#") {
                return Some(found);
            }
        }
        to = found;
    }
}

/// What serde_json says, without its own idea of where.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
