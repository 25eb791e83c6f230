//! The live view of a controller at work: run levels, what is done, what it waits on.

use std::io::{self, Write as _};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_controller::{LevelView, View, WaitView};
use plimsoll_plan::plan::mode::Mode;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two drawings: fast enough to look alive, slow enough for any terminal.
const FRAME: Duration = Duration::from_millis(100);
/// Lines of waiting objects that are shown; the rest is counted.
const WAITS_SHOWN: usize = 8;
/// Width of a terminal that does not tell it.
const WIDTH: usize = 80;
/// Width of a progress bar.
const BAR_WIDTH: usize = 24;

/// Draws views until told to stop.
pub async fn draw(mut views: watch::Receiver<View>, stop: CancellationToken) {
    let mut drawn = 0;
    loop {
        let size = terminal_size::terminal_size_of(io::stderr());
        let width = size.map_or(WIDTH, |(width, _)| usize::from(width.0));
        let lines = lines(&views.borrow_and_update(), crate::process::now(), width);
        // A terminal that went away is no reason to stop the controller.
        let _ = redraw(&lines, drawn);
        drawn = lines.len();
        if stop.is_cancelled() {
            return;
        }
        tokio::select! {
            () = sleep(FRAME) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Replaces the last `drawn` lines of the terminal; in one write, so that it does not flicker.
fn redraw(lines: &[String], drawn: usize) -> io::Result<()> {
    let mut text = "\x1b[1A\x1b[2K".repeat(drawn);
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    io::stderr().lock().write_all(text.as_bytes())
}

/// The view as lines of at most `width` characters.
pub fn lines(view: &View, now: Timestamp, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if view.total == 0 {
        lines.push("Starting".to_owned());
        return lines;
    }
    lines.push(headline(view));
    let active = |level: &&LevelView| level.done < level.total;
    if !view.completed {
        lines.extend(view.levels.iter().filter(active).map(level_line));
    }
    for wait in view.waits.iter().take(WAITS_SHOWN) {
        lines.push(wait_line(wait, now));
    }
    if view.waits.len() > WAITS_SHOWN {
        lines.push(format!("  … and {} more", view.waits.len() - WAITS_SHOWN));
    }
    lines.into_iter().map(|line| shorten(line, width)).collect()
}

fn headline(view: &View) -> String {
    let progressing = view.conditions.iter().find(|condition| condition.type_ == "Progressing");
    let what = progressing.map_or("", |condition| condition.message.as_str());
    let mode = match view.mode {
        Some(Mode::Initializing) => "Installing",
        Some(Mode::Updating) => "Updating",
        Some(Mode::Reconciling) => "Reconciled",
        None => "Starting",
    };
    format!(
        "{mode} {} {} {}/{}  {what}",
        view.version,
        bar(view.done, view.total),
        view.done,
        view.total
    )
}

fn level_line(level: &LevelView) -> String {
    let name = level.level.map_or("  --".to_owned(), |level| format!("  {level:02}"));
    let bar = bar(level.done, level.total);
    format!("{name} {bar} {}/{}  {}", level.done, level.total, level.components.join(", "))
}

fn wait_line(wait: &WaitView, now: Timestamp) -> String {
    let sign = if wait.failed { "✗" } else { "…" };
    let seconds = now.duration_since(wait.since).as_secs().max(0);
    let age = if seconds < 60 { format!("{seconds}s") } else { format!("{}m", seconds / 60) };
    format!("  {sign} {age:>3} {}: {}", wait.object, wait.message.replace('\n', " "))
}

fn bar(done: usize, total: usize) -> String {
    let filled = (BAR_WIDTH * done).checked_div(total).unwrap_or(BAR_WIDTH);
    format!("[{}{}]", "=".repeat(filled), " ".repeat(BAR_WIDTH - filled))
}

fn shorten(line: String, width: usize) -> String {
    if line.chars().count() <= width || width == 0 {
        return line;
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
