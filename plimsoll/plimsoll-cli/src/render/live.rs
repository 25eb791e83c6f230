//! The live view of a controller at work: run levels, what is done, what it waits on.
//!
//! The view is one progress bar whose message has several lines, so that its library clears and
//! draws it: what else is written to the terminal, such as log lines, goes through
//! [`LiveView::write_above`] and stays above it.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use plimsoll_controller::{LevelView, View, WaitView};
use plimsoll_plan::plan::mode::Mode;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::progress::{shorten, stderr_width};

/// Time between two drawings: fast enough to look alive, slow enough for any terminal.
const FRAME: Duration = Duration::from_millis(100);
/// Lines of waiting objects that are shown; the rest is counted.
const WAITS_SHOWN: usize = 8;
/// Width of a progress bar.
const BAR_WIDTH: usize = 24;

/// A terminal on which a view can be drawn, below all other lines that are written to it.
#[derive(Clone)]
pub struct LiveView {
    terminal: Terminal,
    /// What is drawn at the moment; `None` between views.
    frame: Arc<Mutex<Option<ProgressBar>>>,
}

/// Where views are drawn and lines written.
#[derive(Clone)]
enum Terminal {
    Stderr,
    #[cfg(test)]
    Memory(indicatif::InMemoryTerm),
}

impl Terminal {
    fn target(&self) -> ProgressDrawTarget {
        match self {
            Self::Stderr => ProgressDrawTarget::stderr(),
            #[cfg(test)]
            Self::Memory(terminal) => ProgressDrawTarget::term_like(Box::new(terminal.clone())),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stderr => io::stderr().lock().write_all(bytes),
            #[cfg(test)]
            Self::Memory(terminal) => {
                let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
                indicatif::TermLike::write_str(terminal, &text)
            }
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Stderr => stderr_width(),
            #[cfg(test)]
            Self::Memory(_) => 80,
        }
    }
}

impl LiveView {
    /// A view on the terminal of stderr; without a terminal nothing is drawn.
    pub fn of_stderr() -> Self {
        Self { terminal: Terminal::Stderr, frame: Arc::default() }
    }

    /// Writes whole lines above what is drawn.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be written to.
    pub fn write_above(&self, lines: &[u8]) -> io::Result<()> {
        let frame = self.frame.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match frame {
            Some(frame) => frame.suspend(|| self.terminal.write(lines)),
            None => self.terminal.write(lines),
        }
    }

    /// Draws views until `stop`; the last one stays on the terminal.
    pub async fn draw(&self, mut views: watch::Receiver<View>, stop: CancellationToken) {
        self.begin();
        loop {
            let view = views.borrow_and_update().clone();
            self.show(&view, crate::process::now());
            if stop.is_cancelled() {
                break;
            }
            tokio::select! {
                () = sleep(FRAME) => {}
                () = stop.cancelled() => {}
            }
        }
        let view = views.borrow().clone();
        self.end(&view, crate::process::now());
    }

    fn begin(&self) {
        let frame = ProgressBar::with_draw_target(None, self.terminal.target());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            frame.set_style(style);
        }
        self.set(Some(frame));
    }

    fn show(&self, view: &View, now: Timestamp) {
        let frame = self.frame.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(frame) = frame {
            frame.set_message(lines(view, now, self.terminal.width()).join("\n"));
        }
    }

    /// Leaves the last view as ordinary lines, which nothing clears any more.
    fn end(&self, view: &View, now: Timestamp) {
        if let Some(frame) = self.set(None) {
            frame.finish_and_clear();
            let mut text = lines(view, now, self.terminal.width()).join("\n");
            text.push('\n');
            // A terminal that went away is no reason to stop the controller.
            let _ = self.terminal.write(text.as_bytes());
        }
    }

    fn set(&self, frame: Option<ProgressBar>) -> Option<ProgressBar> {
        std::mem::replace(&mut *self.frame.lock().unwrap_or_else(PoisonError::into_inner), frame)
    }
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
    lines.iter().map(|line| shorten(line, width)).collect()
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
    format!("  {sign} {age:>3} {}: {}", wait.object.reference(), wait.message)
}

fn bar(done: usize, total: usize) -> String {
    let filled = (BAR_WIDTH * done).checked_div(total).unwrap_or(BAR_WIDTH);
    format!("[{}{}]", "=".repeat(filled), " ".repeat(BAR_WIDTH - filled))
}

#[cfg(test)]
mod tests {
    //! What is on the terminal when views and log lines are written to it in turns.

    use indicatif::InMemoryTerm;
    use plimsoll_api::{ObjectKey, Reason};

    use super::*;

    fn view(done: usize, waits: &[&str]) -> View {
        let wait = |message: &&str| WaitView {
            object: ObjectKey {
                group: String::new(),
                kind: "Deployment".to_owned(),
                namespace: "harbour".to_owned(),
                name: "crane".to_owned(),
            },
            reason: Reason::ClusterOperatorUpdating,
            message: (*message).to_owned(),
            since: Timestamp::UNIX_EPOCH,
            failed: false,
        };
        View {
            version: "1.0.0".to_owned(),
            mode: Some(Mode::Initializing),
            done,
            total: 2,
            waits: waits.iter().map(wait).collect(),
            ..View::default()
        }
    }

    #[test]
    fn log_lines_stay_above_the_view_and_no_frame_is_left_behind() {
        let memory = InMemoryTerm::new(24, 80);
        let live = LiveView { terminal: Terminal::Memory(memory.clone()), frame: Arc::default() };
        let now = Timestamp::UNIX_EPOCH;
        live.write_above(b"before\n").unwrap();
        live.begin();
        live.show(&view(0, &["not\u{1b}[2Kyet", "nor this"]), now);
        live.write_above(b"WARN there is no ClusterVersion\n").unwrap();
        live.show(&view(1, &["nor this"]), now);
        live.write_above(b"WARN twice\n").unwrap();
        live.end(&view(2, &[]), now);
        live.write_above(b"after\n").unwrap();
        assert_eq!(
            memory.contents(),
            "before\nWARN there is no ClusterVersion\nWARN twice\n\
             Installing 1.0.0 [========================] 2/2\nafter"
        );
    }

    #[test]
    fn a_frame_is_drawn_below_the_log_lines() {
        let memory = InMemoryTerm::new(24, 80);
        let live = LiveView { terminal: Terminal::Memory(memory.clone()), frame: Arc::default() };
        live.begin();
        live.show(&view(1, &["not\u{1b}yet"]), Timestamp::UNIX_EPOCH);
        live.write_above(b"WARN once\n").unwrap();
        assert_eq!(
            memory.contents(),
            "WARN once\nInstalling 1.0.0 [============            ] 1/2\n  \
             \u{2026}  0s deployment/crane -n harbour: not yet"
        );
    }
}
