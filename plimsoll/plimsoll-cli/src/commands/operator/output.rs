//! The output of commands that change Operators. If it is for programs, people read the rest on standard
//! error.
//!
//! What is written is printed as kubectl prints it: once the API server has it, and before the command waits for
//! what becomes of it.

use std::io::Write;

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

    /// Returns standard output.
    pub(super) fn out(&mut self) -> &mut dyn Write {
        &mut *self.out
    }

    /// Writes a plan at once if the output is not for people.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn write_plan(&mut self, plan: impl FnOnce() -> ChangePlan) -> Result<(), Error> {
        if !self.format.is_for_people() {
            changes::write(&plan(), self.format, self.out)?;
        }
        Ok(self.out.flush()?)
    }

    /// Writes Operators at once if the output is for programs: their names, or a list as kubectl prints it. If the
    /// format is one of plans, their plan is written instead.
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
        if *self.format == Format::Name {
            for it in objects {
                let name = it["metadata"]["name"].as_str().unwrap_or_default();
                writeln!(self.out, "{}", reference(OPERATOR, name))?;
            }
        } else if !self.format.is_for_people() {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
            self.format.write(&list, self.out)?;
        }
        Ok(self.out.flush()?)
    }
}
