//! From a directory to a payload, on every processor there is.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use plimsoll_content::Payload;
use plimsoll_content::payload::{
    self, Head, LoadErrors, ParsedFile, SourceFile, TemplateContext, assemble, parse_file,
};

use crate::directory::{ReadErrors, read_directory};

/// Why a payload cannot be loaded: never empty.
#[derive(Debug)]
pub struct LoadError {
    /// What cannot be read.
    pub read: Option<ReadErrors>,
    /// What is wrong with what can.
    pub content: Option<LoadErrors>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.read, &self.content) {
            (Some(read), Some(content)) => write!(f, "{read}\n{content}"),
            (Some(read), None) => read.fmt(f),
            (None, Some(content)) => content.fmt(f),
            (None, None) => f.write_str("the payload cannot be loaded"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads and parses the payload in a directory.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path, context: &TemplateContext) -> Result<Payload, LoadError> {
    let (files, read) = match read_directory(path) {
        Ok(files) => (files, None),
        Err(mut errors) => (std::mem::take(&mut errors.files), Some(errors)),
    };
    match (read, parse(&files, context)) {
        (None, result) => {
            result.map_err(|content| LoadError { read: None, content: Some(content) })
        }
        (Some(read), result) => {
            let content = result.err().and_then(|content| without_consequences(content, &read));
            Err(LoadError { read: Some(read), content })
        }
    }
}

/// The defects that do not follow from something not having been read.
fn without_consequences(mut content: LoadErrors, read: &ReadErrors) -> Option<LoadErrors> {
    content.errors.retain(|error| !read.errors.iter().any(|it| it.explains(&error.place)));
    (!content.errors.is_empty()).then_some(content)
}

/// As [`payload::parse`], on several threads.
///
/// # Errors
/// Everything that is wrong with the payload.
pub fn parse(files: &[SourceFile], context: &TemplateContext) -> Result<Payload, LoadErrors> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    if threads == 1 {
        return payload::parse(files, context);
    }
    let head = Head::read(files, context);
    let mut queue: Vec<&SourceFile> = files.iter().filter(|file| file.holds_manifests()).collect();
    // The largest first, so that no thread is left alone with one at the end.
    queue.sort_by_key(|file| std::cmp::Reverse(file.bytes.len()));
    let next = AtomicUsize::new(0);
    let parsed: Mutex<Vec<ParsedFile>> = Mutex::new(Vec::with_capacity(queue.len()));
    thread::scope(|scope| {
        for _ in 0..threads.min(queue.len()) {
            scope.spawn(|| {
                let mut own = Vec::new();
                while let Some(file) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    own.push(parse_file(file, &head.values));
                }
                parsed.lock().expect("no thread panics while it holds the lock").append(&mut own);
            });
        }
    });
    let parsed = parsed.into_inner().expect("no thread panics while it holds the lock");
    assemble(head, parsed)
}

#[cfg(test)]
mod tests;
