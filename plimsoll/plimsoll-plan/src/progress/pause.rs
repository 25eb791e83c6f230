//! Pausing an update at a run level, asked for by an annotation of the ClusterVersion.

/// The annotation: a run level, or `next` for the one after what is under way.
pub const PAUSE_BEFORE: &str = "plimsoll.io/pause-before";
/// The value that means the next run level.
pub const NEXT: &str = "next";

/// Where an update is to pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Before the run level after what is under way.
    Next,
    /// Before a run level.
    Before(u32),
}

impl Pause {
    /// Reads the annotation. What cannot be read pauses at once: a stop was requested.
    pub fn parse(annotation: Option<&str>) -> Option<Self> {
        let text = annotation?.trim();
        Some(text.parse().map_or(Self::Next, Self::Before))
    }
}

#[cfg(test)]
mod tests {
    //! What annotations mean.

    use super::Pause;

    #[test]
    fn a_number_is_a_run_level_and_all_else_is_the_next_one() {
        let cases = [("40", Pause::Before(40)), ("next", Pause::Next), ("", Pause::Next)];
        for (text, expected) in cases {
            assert_eq!(Pause::parse(Some(text)), Some(expected), "{text}");
        }
        assert_eq!(Pause::parse(None), None);
    }
}
