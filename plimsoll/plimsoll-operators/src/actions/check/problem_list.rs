//! What is wrong with a request, as a list of limited length: a status and a response have to have room for it.

use crate::actions::cut;

/// The maximum number of problems of a request that are listed.
const LISTED_MAX: usize = 10;
/// The maximum length of the sentence about a problem, in bytes.
const SENTENCE_LENGTH_MAX: usize = 1024;

/// The first problems that were found, as sentences, and the number of the others.
#[derive(Debug)]
pub(super) struct Problems {
    sentences: Vec<String>,
    others: usize,
    listed_max: usize,
}

impl Problems {
    /// Returns an empty list for the problems of a request.
    pub(super) fn of_request() -> Self {
        Self::up_to(LISTED_MAX)
    }

    /// Returns an empty list that has at most so many sentences.
    pub(super) fn up_to(listed_max: usize) -> Self {
        Self { sentences: Vec::new(), others: 0, listed_max }
    }

    /// Adds a problem. Its sentence is only made if it is listed.
    pub(super) fn add(&mut self, sentence: impl FnOnce() -> String) {
        if self.sentences.len() < self.listed_max {
            self.sentences.push(cut(&sentence(), SENTENCE_LENGTH_MAX));
        } else {
            self.others += 1;
        }
    }

    /// Adds a problem for each item.
    pub(super) fn add_each<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        sentence: impl Fn(T) -> String,
    ) {
        for item in items {
            self.add(|| sentence(item));
        }
    }

    /// Returns the sentences, the last of which says how many others there are.
    pub(super) fn listed(self) -> Vec<String> {
        let Self { mut sentences, others, .. } = self;
        if others > 0 {
            sentences.push(format!("and {others} more"));
        }
        sentences
    }
}

impl Extend<String> for Problems {
    fn extend<T: IntoIterator<Item = String>>(&mut self, sentences: T) {
        for sentence in sentences {
            self.add(|| sentence);
        }
    }
}
