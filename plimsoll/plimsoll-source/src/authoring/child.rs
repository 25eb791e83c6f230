//! Programs that work on a source: how long they may run, and what they may take and print.
//!
//! Templates are programs: one that loops has no end, and one that repeats what it prints takes all
//! memory before it prints anything. What a program starts, such as plugins, is killed with it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Most bytes that are kept of what a program says on standard error.
const STDERR_SIZE_MAX: u64 = 1 << 20;
/// How long to wait before looking at a program again.
const PAUSE: Duration = Duration::from_millis(5);

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How long it may run.
    pub(super) time: Duration,
    /// Most bytes of memory, as far as the system tells.
    pub(super) memory: u64,
    /// Most bytes that it may print.
    pub(super) output: u64,
}

/// What a program printed until it ended by itself.
#[derive(Debug)]
pub(super) struct Printed {
    /// How it ended.
    pub(super) status: ExitStatus,
    /// Its standard output.
    pub(super) stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub(super) stderr: Vec<u8>,
}

/// Why a program has no output.
#[derive(Debug)]
pub(super) enum Stop {
    /// The system does not run it.
    System(io::Error),
    /// It ran longer than it may.
    Time,
    /// It took more memory than it may.
    Memory,
    /// It printed more than it may: as much as it may.
    Output(Vec<u8>),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Kills the programs that run, and starts no more: this process is interrupted.
pub fn kill_programs() {
    PROGRAMS.stop();
}

/// The programs of this process.
static PROGRAMS: Programs = Programs(Mutex::new(Running { groups: Vec::new(), is_stopped: false }));

/// The programs that run, each in a process group of its own: what it starts is in that, too. A terminal
/// does not interrupt these groups.
struct Programs(Mutex<Running>);

struct Running {
    groups: Vec<Pid>,
    is_stopped: bool,
}

impl Programs {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        let mut running = self.lock();
        running.is_stopped = true;
        running.groups.iter().copied().for_each(kill);
    }

    fn start(&self, command: &mut Command) -> io::Result<Child> {
        // Locked until the group is listed: one that starts meanwhile is killed, too.
        let mut running = self.lock();
        if running.is_stopped {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let child = command.process_group(0).spawn()?;
        running.groups.push(Pid::from_child(&child));
        Ok(child)
    }

    fn run(&self, command: &mut Command, bounds: Bounds) -> Result<Printed, Stop> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Outside of the terminal's group, a program that asks there waits for ever.
        command.env("GIT_TERMINAL_PROMPT", "0");
        let mut child = self.start(command)?;
        let group = Pid::from_child(&child);
        let result = follow(&mut child, bounds);
        if result.is_err() {
            // It may have ended by itself meanwhile.
            kill(group);
            let _ = child.wait();
        }
        self.lock().groups.retain(|running| *running != group);
        result
    }
}

fn kill(group: Pid) {
    // All of its processes may have ended.
    let _ = kill_process_group(group, Signal::KILL);
}

/// Runs a program without input to its end, or to a bound, where it is killed with all that it started.
pub(super) fn run(command: &mut Command, bounds: Bounds) -> Result<Printed, Stop> {
    PROGRAMS.run(command, bounds)
}

fn follow(child: &mut Child, bounds: Bounds) -> Result<Printed, Stop> {
    let begun = Instant::now();
    let missing = || io::Error::other("its output is not a pipe");
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let mut stdout = Pipe::new(stdout, bounds.output.saturating_add(1), Rest::Left);
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let mut stderr = Pipe::new(stderr, STDERR_SIZE_MAX, Rest::Skipped);
    loop {
        stdout.look()?;
        stderr.look()?;
        if let Some(printed) = &mut stdout.read
            && printed.len() as u64 > bounds.output
        {
            return Err(Stop::Output(std::mem::take(printed)));
        }
        if let (Some(printed), Some(said)) = (&mut stdout.read, &mut stderr.read)
            && let Some(status) = child.try_wait()?
        {
            let (stdout, stderr) = (std::mem::take(printed), std::mem::take(said));
            return Ok(Printed { status, stdout, stderr });
        }
        if begun.elapsed() > bounds.time {
            return Err(Stop::Time);
        }
        if memory(child.id()).is_some_and(|bytes| bytes > bounds.memory) {
            return Err(Stop::Memory);
        }
        if stdout.read.is_some() && stderr.read.is_some() {
            thread::sleep(PAUSE);
        }
    }
}

/// What becomes of the bytes that are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// They are not read: writing them fails.
    Left,
    /// They are read and dropped.
    Skipped,
}

/// A pipe that a thread reads. The thread of one that never ends stays until the program does: others
/// may have inherited its other end.
struct Pipe {
    receiver: Receiver<io::Result<Vec<u8>>>,
    /// All that is kept, once there is an end.
    read: Option<Vec<u8>>,
}

impl Pipe {
    fn new(from: impl Read + Send + 'static, bytes_max: u64, rest: Rest) -> Self {
        let (sender, receiver) = sync_channel(1);
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut from = from.take(bytes_max);
            let mut result = from.read_to_end(&mut bytes);
            if rest == Rest::Skipped && result.is_ok() {
                result = io::copy(&mut from.into_inner(), &mut io::sink()).map(|_| 0);
            }
            let _ = sender.send(result.map(|_| bytes));
        });
        Self { receiver, read: None }
    }

    /// Waits a moment for the end, unless it is there.
    fn look(&mut self) -> io::Result<()> {
        if self.read.is_none() {
            match self.receiver.recv_timeout(PAUSE) {
                Ok(read) => self.read = Some(read?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("its output cannot be read"));
                }
            }
        }
        Ok(())
    }
}

/// The memory that a process has, in bytes; `None` if it has ended, or if the system does not tell.
fn memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    //! Scripts that end, and scripts that do not.

    use super::*;

    const WIDE: Bounds = Bounds { time: Duration::from_secs(60), memory: 1 << 30, output: 100 };
    /// A loop within the shell.
    const ENDLESS: &str = "while :; do :; done";

    fn script(text: &str, bounds: Bounds) -> Result<Printed, Stop> {
        run(Command::new("sh").args(["-c", text]), bounds)
    }

    #[test]
    fn what_a_program_prints_and_how_it_ends_is_known() {
        let printed = script("echo out; echo err >&2; exit 3", WIDE).expect("it ends");
        assert_eq!(printed.status.code(), Some(3));
        assert_eq!((&*printed.stdout, &*printed.stderr), (&b"out\n"[..], &b"err\n"[..]));
        let missing = run(&mut Command::new("/no/such/program"), WIDE).expect_err("there is none");
        assert!(matches!(missing, Stop::System(error) if error.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn a_program_is_killed_at_its_bounds() {
        let late = Bounds { time: Duration::ZERO, ..WIDE };
        assert!(matches!(script(ENDLESS, late), Err(Stop::Time)));
        let Err(Stop::Output(printed)) = script("while :; do echo again; done", WIDE) else {
            panic!("it prints more than 100 bytes")
        };
        assert_eq!(printed.len(), 101);
        assert!(printed.starts_with(b"again\nagain\n"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_is_killed_at_the_bound_of_its_memory() {
        let small = Bounds { memory: 0, ..WIDE };
        assert!(matches!(script(ENDLESS, small), Err(Stop::Memory)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_killed_program_started_is_killed_with_it() {
        let text = format!("({ENDLESS}) & echo $!; while :; do echo again; done");
        let Err(Stop::Output(printed)) = script(&text, WIDE) else {
            panic!("it prints more than 100 bytes")
        };
        let printed = String::from_utf8_lossy(&printed);
        let stat = format!("/proc/{}/stat", printed.lines().next().expect("a process"));
        // One that nothing waits for stays as a zombie.
        while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            thread::yield_now();
        }
    }

    #[test]
    fn an_interruption_kills_what_runs_and_starts_no_more() {
        let programs = Programs(Mutex::new(Running { groups: Vec::new(), is_stopped: false }));
        let endless = || programs.run(Command::new("sh").args(["-c", ENDLESS]), WIDE);
        let printed = thread::scope(|scope| {
            let running = scope.spawn(endless);
            while programs.lock().groups.is_empty() {
                thread::yield_now();
            }
            programs.stop();
            running.join().expect("no panic")
        });
        assert_eq!(printed.expect("its pipes end").status.code(), None, "it was killed");
        assert!(programs.lock().groups.is_empty());
        let refused = endless().expect_err("it is not started");
        assert!(matches!(refused, Stop::System(it) if it.kind() == io::ErrorKind::Interrupted));
    }
}
