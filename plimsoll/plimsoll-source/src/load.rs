//! From a directory to a payload.

use std::fmt;
use std::path::Path;

use plimsoll_content::Payload;
use plimsoll_content::payload::{PayloadErrors, TemplateContext, parse};

use crate::directory::{ReadErrors, read_directory};

/// Why a payload cannot be loaded: never empty.
#[derive(Debug)]
pub struct LoadError {
    /// The files that cannot be read; `None` when all can.
    pub read: Option<ReadErrors>,
    /// The errors in the files that were read; `None` when there are none.
    pub content: Option<PayloadErrors>,
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
/// [`LoadError`] with everything that cannot be read, and everything that is wrong with what can.
pub fn load(path: &Path, context: &TemplateContext) -> Result<Payload, LoadError> {
    let (files, read) = match read_directory(path) {
        Ok(files) => (files, None),
        Err(mut errors) => (std::mem::take(&mut errors.files), Some(errors)),
    };
    match (read, parse(files, context)) {
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
fn without_consequences(mut content: PayloadErrors, read: &ReadErrors) -> Option<PayloadErrors> {
    content
        .errors
        .retain(|error| !read.errors.iter().any(|it| it.explains(&error.location.path())));
    (!content.errors.is_empty()).then_some(content)
}

#[cfg(test)]
mod tests;
