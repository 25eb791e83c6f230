//! Progress of what takes longer than half a second: a line on the terminal of standard error, which is
//! cleared when it is over. Without a terminal nothing is drawn.

use std::io::{self, IsTerminal as _, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a command may take before its progress is shown.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two drawings; also the least time that something takes before it is shown.
const FRAME: Duration = Duration::from_millis(100);
/// Moves the cursor to the beginning of its line, and clears that.
const CLEAR: &str = "\r\x1b[2K";

/// Width of a terminal that does not report its own.
const WIDTH: usize = 80;

/// When the first line of the process began.
static BEGUN: OnceLock<Instant> = OnceLock::new();

/// What is being done, as long as this value lives.
///
/// Nothing else may be written to standard error meanwhile.
pub(crate) struct ProgressLine {
    what: String,
    /// `None` without a terminal.
    drawing: Option<Drawing>,
}

/// The thread that draws a line.
struct Drawing {
    line: Arc<Mutex<String>>,
    /// Ends the thread when it is dropped.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Begins to do something, such as `reading Operators`.
    pub(crate) fn begin(what: impl Into<String>) -> Self {
        let what = what.into();
        let drawing = if io::stderr().is_terminal() { Drawing::begin(&what) } else { None };
        Self { what, drawing }
    }

    /// Shows how far it is, such as `40%`, in place of what was shown before.
    pub(crate) fn show(&self, how_far: &str) {
        if let Some(drawing) = &self.drawing {
            let line = format!("{} {how_far}", self.what);
            *drawing.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
        }
    }
}

impl Drawing {
    /// Starts the thread; `None` if the system has none left.
    fn begin(what: &str) -> Option<Self> {
        let elapsed = BEGUN.get_or_init(Instant::now).elapsed();
        let patience = PATIENCE.saturating_sub(elapsed).max(FRAME);
        let line = Arc::new(Mutex::new(what.to_owned()));
        let (end, ended) = mpsc::channel::<()>();
        let shared = Arc::clone(&line);
        let run = move || {
            let line = || {
                let line = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
                shorten(&line, stderr_width())
            };
            let is_over = |wait| ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            draw(line, is_over, patience, &mut io::stderr());
        };
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(run).ok()?;
        Some(Self { line, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing to clear.
            let _ = thread.join();
        }
    }
}

/// Draws a line again and again until it is over, which `is_over` waits for, and clears it.
fn draw(
    line: impl Fn() -> String,
    mut is_over: impl FnMut(Duration) -> bool,
    patience: Duration,
    out: &mut dyn Write,
) {
    let (mut drawn, mut wait) = (String::new(), patience);
    while !is_over(wait) {
        let current = line();
        if current != drawn {
            // A terminal that went away is no reason to stop.
            let _ = write!(out, "{CLEAR}{current}").and_then(|()| out.flush());
            drawn = current;
        }
        wait = FRAME;
    }
    if !drawn.is_empty() {
        let _ = write!(out, "{CLEAR}").and_then(|()| out.flush());
    }
}

/// The width of the terminal of standard error, in characters.
pub(crate) fn stderr_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(WIDTH, |(width, _)| usize::from(width.0))
}

/// A line of at most `width` characters, none of which moves the cursor.
pub(crate) fn shorten(line: &str, width: usize) -> String {
    let line = line.replace(char::is_control, " ");
    if line.chars().count() <= width || width == 0 {
        return line;
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written if it is over after some waits, with the lines that there are then.
    fn written(lines: &[&str]) -> (String, Vec<Duration>) {
        let (mut out, mut waits) = (Vec::new(), Vec::new());
        let at = std::cell::Cell::new(0);
        let line = || {
            let line = lines[at.get()].to_owned();
            at.set(at.get() + 1);
            line
        };
        let is_over = |wait| {
            waits.push(wait);
            at.get() == lines.len()
        };
        draw(line, is_over, PATIENCE, &mut out);
        (String::from_utf8(out).unwrap(), waits)
    }

    #[test]
    fn what_is_over_in_time_is_not_shown() {
        assert_eq!(written(&[]), (String::new(), vec![PATIENCE]));
    }

    #[test]
    fn what_takes_long_is_shown_and_cleared() {
        let (text, waits) = written(&["reading 1%", "reading 1%", "reading 2%"]);
        assert_eq!(text, format!("{CLEAR}reading 1%{CLEAR}reading 2%{CLEAR}"));
        assert_eq!(waits, [PATIENCE, FRAME, FRAME, FRAME]);
    }
}
