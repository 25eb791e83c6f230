//! Questions to the user at the terminal.
//!
//! The upper-case letter is the answer to an empty line. Where there is no terminal, or its input ends,
//! the answer is the one that changes nothing, whatever the upper-case letter is.

use std::io::{self, BufRead, IsTerminal as _, Write};

/// What an empty line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultAnswer {
    /// `[Y/n]`
    Yes,
    /// `[N/y]`
    No,
    /// `[n/Y]`: yes as well, as the design document spells it where something is to go.
    YesLast,
}

impl DefaultAnswer {
    fn letters(self) -> &'static str {
        match self {
            Self::Yes => "[Y/n]",
            Self::No => "[N/y]",
            Self::YesLast => "[n/Y]",
        }
    }
}

/// How questions are answered.
pub enum Prompter {
    /// Without a terminal: each answer is no.
    NonInteractive,
    /// With `--yes`: each answer is yes.
    AssumeYes,
    /// By lines of this input.
    Terminal(Box<dyn BufRead + Send>),
}

impl Prompter {
    /// Creates a prompter for the terminal, if there is one; with `--yes` it asks nothing.
    pub fn new(assume_yes: bool) -> Self {
        match (assume_yes, io::stdin().is_terminal()) {
            (true, _) => Self::AssumeYes,
            (false, true) => Self::Terminal(Box::new(io::BufReader::new(io::stdin()))),
            (false, false) => Self::NonInteractive,
        }
    }

    /// Asks a question and returns whether the answer is yes. The question is empty if the text printed before
    /// asks it.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be read or written.
    pub fn confirm(
        &mut self,
        question: &str,
        default: DefaultAnswer,
        out: &mut dyn Write,
    ) -> io::Result<bool> {
        let blank = if question.is_empty() { "" } else { " " };
        write!(out, "{question}{blank}{}: ", default.letters())?;
        out.flush()?;
        let input = match self {
            Self::NonInteractive => {
                writeln!(out, "n (no terminal; --yes agrees)")?;
                return Ok(false);
            }
            Self::AssumeYes => {
                writeln!(out, "y (--yes)")?;
                return Ok(true);
            }
            Self::Terminal(input) => input,
        };
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                writeln!(out)?;
                return Ok(false);
            }
            match line.trim().to_lowercase().as_str() {
                "" => return Ok(default != DefaultAnswer::No),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => write!(out, "Answer y or n {}: ", default.letters())?,
            }
            out.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_was_typed_or_the_safe_one() {
        let check = |mut by: Prompter, default: DefaultAnswer, expected: bool, shown: &str| {
            let mut out = Vec::new();
            assert_eq!(by.confirm("Continue?", default, &mut out).unwrap(), expected, "{shown}");
            assert_eq!(String::from_utf8(out).unwrap(), shown);
        };
        let typed = |text: &'static str| Prompter::Terminal(Box::new(text.as_bytes()));
        let (yes, no) = (DefaultAnswer::Yes, DefaultAnswer::No);
        check(typed("y\n"), no, true, "Continue? [N/y]: ");
        check(typed("No\n"), yes, false, "Continue? [Y/n]: ");
        check(typed("\n"), no, false, "Continue? [N/y]: ");
        check(typed("\n"), yes, true, "Continue? [Y/n]: ");
        check(typed("\n"), DefaultAnswer::YesLast, true, "Continue? [n/Y]: ");
        check(typed("what\nyes\n"), no, true, "Continue? [N/y]: Answer y or n [N/y]: ");
        check(typed(""), yes, false, "Continue? [Y/n]: \n");
        let declined = "Continue? [Y/n]: n (no terminal; --yes agrees)\n";
        check(Prompter::NonInteractive, yes, false, declined);
        check(Prompter::AssumeYes, no, true, "Continue? [N/y]: y (--yes)\n");
    }
}
