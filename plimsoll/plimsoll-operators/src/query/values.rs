//! Values that are the same on a command line and in a query.

/// Reads what is excluded: a package, or one bundle of it.
///
/// # Errors
///
/// When a name is missing.
pub fn exclusion(text: &str) -> Result<String, String> {
    match text.split('/').any(str::is_empty) {
        false => Ok(text.to_owned()),
        true => Err("write PACKAGE or PACKAGE/BUNDLE".to_owned()),
    }
}

/// Reads the choice of a provider: a package or an API, and the package that is to provide it.
///
/// # Errors
///
/// When one of both is missing.
pub fn provider(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((provided, package)) if !provided.is_empty() && !package.is_empty() => {
            Ok(text.to_owned())
        }
        Some(_) | None => Err(format!(
            "`{text}` is not of the form PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE"
        )),
    }
}
