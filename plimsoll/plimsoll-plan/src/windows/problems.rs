//! What is wrong with a window that a user wrote.

use plimsoll_api::duration;
use plimsoll_api::olm::window::WindowTimes;

use super::schedule::Schedule;

/// Returns what is wrong with a window, which is at a path of a spec; with an empty path, its fields are named
/// alone.
pub fn window_problems(window: &WindowTimes, path: &str) -> Vec<String> {
    let field = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let mut found = Vec::new();
    match Schedule::parse(&window.schedule, "") {
        Err(_) if window.schedule.is_empty() => {
            let schedule = field("schedule");
            found.push(format!("{schedule} is missing: write for example \"0 22 * * 5\""));
        }
        Err(why) => found.push(format!("{}: {why}", field("schedule"))),
        Ok(_) => {
            let zone = Schedule::parse(&window.schedule, &window.time_zone);
            found.extend(zone.err().map(|why| format!("{}: {why}", field("timeZone"))));
        }
    }
    let lasts = duration::parse(&window.duration).ok();
    if let Some(why) = duration::problem(&window.duration) {
        found.push(format!("{} {why}", field("duration")));
    } else if window.duration.is_empty() {
        found.push(format!("{} is missing: write for example 4h", field("duration")));
    } else if lasts.is_none_or(|it| it.is_zero()) {
        let (at, duration) = (field("duration"), &window.duration);
        found.push(format!("{at} is {duration:?}: write for example 4h"));
    }
    found
}
