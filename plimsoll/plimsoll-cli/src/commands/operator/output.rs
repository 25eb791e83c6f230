//! The output of commands that change Operators. If it is for programs, people read the rest on standard
//! error.
//!
//! What is written is printed as kubectl prints it: once the API server has it, and before the command waits for
//! what becomes of it.

use std::io::{self, ErrorKind, Write};

use anyhow::Error;
use plimsoll_api::OPERATOR;
use plimsoll_operators::change_plan::ChangePlan;
use serde_json::{Value, json};

use crate::render::changes;
use crate::render::format::Format;
use crate::render::object::reference;

/// The output of a command.
pub(super) struct Output<'o> {
    /// The form of what was written.
    format: &'o Format,
    out: &'o mut dyn Write,
    errors: anstream::Stderr,
}

impl<'o> Output<'o> {
    pub(super) fn new(format: &'o Format, out: &'o mut dyn Write) -> Self {
        Self { format, out, errors: anstream::stderr() }
    }

    /// Returns whether all of the output is for people.
    pub(super) fn is_for_people(&self) -> bool {
        self.format.is_for_people()
    }

    /// Returns what people read.
    pub(super) fn people(&mut self) -> &mut dyn Write {
        if self.format.is_for_people() { &mut *self.out } else { &mut self.errors }
    }

    /// Returns what people read once something is being changed: the command goes on if it is not read any more.
    pub(super) fn of_changes(&mut self) -> Unread<'_> {
        Unread(self.people())
    }

    /// Returns standard output.
    pub(super) fn out(&mut self) -> &mut dyn Write {
        &mut *self.out
    }

    /// Writes a plan at once if the output is not for people. The command goes on if it is not read.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn write_plan(&mut self, plan: impl FnOnce() -> ChangePlan) -> Result<(), Error> {
        if !self.format.is_for_people() {
            changes::write(&plan(), self.format, &mut Unread(&mut *self.out))?;
        }
        Ok(Unread(&mut *self.out).flush()?)
    }

    /// Writes Operators at once if the output is for programs: their names, or a list as kubectl prints it. If the
    /// format is one of plans, their plan is written instead. The command goes on if they are not read.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn write_operators(
        &mut self,
        objects: &[Value],
        plan: impl FnOnce() -> ChangePlan,
    ) -> Result<(), Error> {
        if self.format.is_of_plan() {
            return self.write_plan(plan);
        }
        let mut out = Unread(&mut *self.out);
        if *self.format == Format::Name {
            for it in objects {
                let name = it["metadata"]["name"].as_str().unwrap_or_default();
                writeln!(out, "{}", reference(OPERATOR, name))?;
            }
        } else if !self.format.is_for_people() {
            self.format.write(&list_of(objects), &mut out)?;
        }
        Ok(out.flush()?)
    }
}

/// Returns objects as a list, as kubectl prints one.
pub(super) fn list_of(objects: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": objects })
}

/// Output that may not be read to its end: what is written after that is dropped.
pub(super) struct Unread<'o>(&'o mut dyn Write);

impl Write for Unread<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Output that is closed, or cannot be written.

    use plimsoll_operators::change_plan::PlannedOperation;

    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[track_caller]
    fn check(kind: ErrorKind, goes_on: bool) {
        let nothing = || ChangePlan::nothing(PlannedOperation::Delete);
        let objects = [json!({ "metadata": { "name": "foo" } })];
        for format in [Format::Name, Format::Json, Format::PlanJson] {
            let mut out = Failing(kind);
            let mut output = Output::new(&format, &mut out);
            assert_eq!(output.write_operators(&objects, nothing).is_ok(), goes_on, "{format}");
            assert_eq!(output.write_plan(nothing).is_ok(), goes_on, "{format}");
        }
        let mut out = Failing(kind);
        let mut output = Output::new(&Format::Text, &mut out);
        assert_eq!(writeln!(output.of_changes(), "foo deleted").is_ok(), goes_on);
        assert!(writeln!(output.people(), "continue?").is_err());
    }

    #[test]
    fn a_change_goes_on_when_its_output_is_closed() {
        check(ErrorKind::BrokenPipe, true);
        check(ErrorKind::StorageFull, false);
    }
}
