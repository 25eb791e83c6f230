//! Parameters of a URL, as all queries read them.

use plimsoll_content::capability::most_similar;

/// Checks a parameter of a URL, of which `known` are the possible names.
///
/// # Errors
///
/// When the parameter is unknown (the message names the one that may be meant) or has no value.
pub fn check_parameter(name: &str, value: &str, known: &[&str]) -> Result<(), String> {
    if !known.contains(&name) {
        let unknown = format!("unknown parameter `{name}`");
        return Err(match (most_similar(name, known.iter().copied()), known) {
            (Some(similar), _) => format!("{unknown}, did you mean `{similar}`?"),
            (None, []) => format!("{unknown}: there are none for this path"),
            (None, [only]) => format!("{unknown}: there is {only}"),
            (None, known) => format!("{unknown}: there are {}", known.join(", ")),
        });
    }
    if value.is_empty() {
        return Err(format!("the parameter `{name}` has no value: give it one, or leave it out"));
    }
    Ok(())
}

/// Sets the value of a parameter that has one.
///
/// # Errors
///
/// When it is set already.
pub fn set_parameter<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("the parameter `{name}` is given twice: give it once")),
    }
}
