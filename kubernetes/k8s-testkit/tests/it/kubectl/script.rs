//! Scripts: files to write, commands to run, what is expected of each.
//!
//! `--- NAME` begins a file, `---` ends it; `$ COMMAND` is a command for the shell, and the lines
//! up to the next one are what it prints, standard error included. `## ` begins a remark.
use std::fmt::Write as _;
use std::path::Path;

/// A session.
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
}

/// One part of a session.
pub(super) enum Step {
    /// A remark.
    Comment(String),
    /// A file in the working directory.
    File { name: String, text: String },
    /// A command and what it prints.
    Command { line: String, expected: String },
}

impl Script {
    /// Reads a script.
    pub(super) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the script can be read");
        let mut steps = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("--- ") {
                let text: String = lines
                    .by_ref()
                    .take_while(|line| *line != "---")
                    .map(|l| format!("{l}\n"))
                    .collect();
                steps.push(Step::File { name: name.to_owned(), text });
            } else if let Some(command) = line.strip_prefix("$ ") {
                let mut expected = String::new();
                while let Some(line) = lines.next_if(|line| {
                    !line.starts_with("$ ") && !line.starts_with("--- ") && !line.starts_with("## ")
                }) {
                    expected.push_str(line);
                    expected.push('\n');
                }
                steps.push(Step::Command { line: command.to_owned(), expected });
            } else if !line.is_empty() {
                steps.push(Step::Comment(line.to_owned()));
            }
        }
        Self { steps }
    }

    /// Puts what was printed in the place of what was expected.
    pub(super) fn record(&mut self, printed: &[String]) {
        for (expected, printed) in self.expectations().zip(printed) {
            printed.clone_into(expected);
        }
    }

    fn expectations(&mut self) -> impl Iterator<Item = &mut String> {
        self.steps.iter_mut().filter_map(|step| match step {
            Step::Command { expected, .. } => Some(expected),
            Step::Comment(_) | Step::File { .. } => None,
        })
    }

    /// Writes the script.
    pub(super) fn write(&self, path: &Path) {
        let mut text = String::new();
        for step in &self.steps {
            match step {
                Step::Comment(comment) => writeln!(text, "{comment}"),
                Step::File { name, text: content } => writeln!(text, "--- {name}\n{content}---"),
                Step::Command { line, expected } => write!(text, "$ {line}\n{expected}"),
            }
            .expect("text can be written to a string");
        }
        std::fs::write(path, text).expect("the script can be written");
    }

    /// Where what was printed is not what was expected.
    pub(super) fn differences(&self, printed: &[String]) -> Vec<String> {
        let commands = self.steps.iter().filter_map(|step| match step {
            Step::Command { line, expected } => Some((line, expected)),
            Step::Comment(_) | Step::File { .. } => None,
        });
        commands
            .zip(printed)
            .filter(|((_, expected), printed)| expected != printed)
            .map(|((line, expected), printed)| {
                format!("$ {line}\n{}", marked_lines(expected, printed))
            })
            .collect()
    }
}

/// Lines that only one side has, in order: `-` was expected, `+` was printed.
fn marked_lines(expected: &str, printed: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), printed.lines().collect());
    // Lengths of the longest common subsequences of what is left.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (row, old_line) in old.iter().enumerate().rev() {
        for (column, new_line) in new.iter().enumerate().rev() {
            common[row][column] = if old_line == new_line {
                common[row + 1][column + 1] + 1
            } else {
                common[row + 1][column].max(common[row][column + 1])
            };
        }
    }
    let (mut row, mut column, mut out) = (0, 0, String::new());
    while row < old.len() || column < new.len() {
        if row < old.len() && column < new.len() && old[row] == new[column] {
            row += 1;
            column += 1;
        } else if column == new.len()
            || row < old.len() && common[row + 1][column] >= common[row][column + 1]
        {
            let _ = writeln!(out, "- {}", old[row]);
            row += 1;
        } else {
            let _ = writeln!(out, "+ {}", new[column]);
            column += 1;
        }
    }
    out
}
