//! Solutions and explanations as texts for people.

use std::fmt::Write as _;

use crate::explain::{Explanation, ExplanationStep};
use crate::printable::on_one_line;
use crate::problem::CatalogName;
use crate::solution::{InstallReason, RefusedCandidate, Solution, UnreachableBundle};

impl Solution {
    /// The solution as a text; with `explained` for whom each thing is, and why nothing else.
    pub fn text(&self, explained: bool) -> String {
        let mut text = String::new();
        if self.install.is_empty() {
            text.push_str("nothing to do\n");
        }
        for item in &self.install {
            let verb = if item.updates.is_some() { "update" } else { "install" };
            line(&mut text, 0, &format!("{verb} {} {}", item.package, item.version));
            let from = format!("channel {} of catalog {}", item.channel, item.catalog);
            let place = match item.namespace.as_str() {
                "" => String::new(),
                namespace => format!(", into namespace {namespace}"),
            };
            let instead = item.updates.as_ref();
            let instead = instead.map(|old| format!(", replacing {old}")).unwrap_or_default();
            line(&mut text, 1, &format!("{} from {from}{place}{instead}", item.bundle));
            if let Some(range) = &item.towards {
                let step = format!("a step towards `{range}`, which no update leads to directly");
                line(&mut text, 1, &step);
            }
            if explained {
                because(&mut text, &item.because);
            }
            alternatives(&mut text, &item.instead_of, Some(&item.catalog));
            for rather in &item.rather_than {
                let newer = rather.version.cmp_precedence(&item.version).is_gt();
                if explained || (rather.package == item.package && newer) {
                    line(&mut text, 1, &rather.why);
                }
            }
        }
        for kept in &self.stays {
            if explained || kept.is_explained() {
                line(&mut text, 0, &format!("keep {}", kept.bundle));
                because(&mut text, &kept.because);
                alternatives(&mut text, &kept.instead_of, None);
                for rather in &kept.rather_than {
                    line(&mut text, 1, &rather.why);
                }
                if let Some(UnreachableBundle { version, channel, catalog, .. }) = &kept.unreachable
                {
                    let place = format!("channel {channel} of catalog {catalog}");
                    line(&mut text, 1, &format!("no update leads from it to {version} of {place}"));
                }
            }
        }
        for decision in &self.overrides {
            line(&mut text, 0, &format!("override: {decision}"));
        }
        warnings(&mut text, &self.warnings);
        text
    }
}

impl Explanation {
    /// The explanation as a text: the chain, then what could be done.
    pub fn text(&self) -> String {
        let mut text = match self.conflicts.len() {
            0 | 1 => String::from("no solution found:\n"),
            count => format!("no solution found: {count} independent conflicts\n"),
        };
        for (at, conflict) in self.conflicts.iter().enumerate() {
            let effect = if self.conflicts.len() > 1 {
                let _ = writeln!(text, "\nconflict {}:", at + 1);
                "resolves this conflict"
            } else {
                "makes it solvable"
            };
            chain(&mut text, 1, &conflict.steps);
            match conflict.changes.as_slice() {
                [] => {}
                [_] => text.push_str(&format!("\nhelp: this change {effect}:\n")),
                _ => text.push_str(&format!("\nhelp: each of these changes {effect}:\n")),
            }
            for change in &conflict.changes {
                line(&mut text, 1, &change.text);
            }
        }
        warnings(&mut text, &self.warnings);
        text
    }
}

fn line(text: &mut String, depth: usize, words: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{:indent$}{}", "", on_one_line(words), indent = 2 * depth);
}

fn because(text: &mut String, because: &[InstallReason]) {
    for reason in because {
        let words = match reason {
            InstallReason::Requested { request } => format!("because {request} is requested"),
            InstallReason::Required { by, requirement } => {
                format!("because {by} requires {requirement}")
            }
            InstallReason::Follows { channel } => format!("because it follows channel {channel}"),
        };
        line(text, 1, &words);
    }
}

/// Catalogs are named where they are others than that of what was taken.
fn alternatives(text: &mut String, alternatives: &[RefusedCandidate], taken: Option<&CatalogName>) {
    for alternative in alternatives {
        let more = match alternative.and_more {
            0 => String::new(),
            more => format!(", the first of {} that cannot be selected", more + 1),
        };
        let from = match &alternative.catalog {
            Some(catalog) if taken.is_some_and(|taken| taken != catalog) => {
                format!(" of catalog {catalog}")
            }
            _ => String::new(),
        };
        line(text, 1, &format!("not {}{from}{more}:", alternative.bundle));
        chain(text, 2, &alternative.why);
    }
}

fn chain(text: &mut String, depth: usize, sentences: &[ExplanationStep]) {
    for sentence in sentences {
        line(text, depth, &sentence.text);
    }
}

fn warnings(text: &mut String, warnings: &[String]) {
    for warning in warnings {
        line(text, 0, &format!("warning: {warning}"));
    }
}
