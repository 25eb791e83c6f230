//! Uids and generated name suffixes, drawn from a seed.
//!
//! Each purpose has its own stream, so that an additional draw for one does not shift the others.

use serde::{Deserialize, Serialize};

/// Characters of generated name suffixes: without vowels and similar characters, so that no words
/// are generated.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of a generated name suffix.
const SUFFIX_LEN: usize = 5;

/// The source of identifiers of a server.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    uids: IdStream,
    suffixes: IdStream,
    forks: IdStream,
    reviews: IdStream,
}

/// The state of a source of identifiers.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct IdState {
    pub(crate) uids: u64,
    pub(crate) suffixes: u64,
    pub(crate) forks: u64,
    pub(crate) reviews: u64,
}

impl Ids {
    /// Streams that depend on `seed` only.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            uids: IdStream(seed ^ 0x7569_6473),
            suffixes: IdStream(seed ^ 0x6e61_6d65_7300),
            forks: IdStream(seed ^ 0x666f_726b_7300),
            reviews: IdStream(seed ^ 0x7265_7669_6577),
        }
    }

    /// A source of identifiers for one request.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.forks.draw())
    }

    /// The streams with this state.
    pub(crate) fn of_state(state: IdState) -> Self {
        let [uids, suffixes, forks, reviews] =
            [state.uids, state.suffixes, state.forks, state.reviews].map(IdStream);
        Self { uids, suffixes, forks, reviews }
    }

    /// The state of the streams.
    pub(crate) fn state(&self) -> IdState {
        IdState {
            uids: self.uids.0,
            suffixes: self.suffixes.0,
            forks: self.forks.0,
            reviews: self.reviews.0,
        }
    }

    /// The next uid, in the form of a random (version 4) UUID.
    pub(crate) fn next_uid(&mut self) -> String {
        self.uids.draw_uuid()
    }

    /// The next uid of a webhook call.
    pub(crate) fn next_review(&mut self) -> String {
        self.reviews.draw_uuid()
    }

    /// The next suffix for a `generateName`.
    pub(crate) fn next_suffix(&mut self) -> String {
        let mut drawn = self.suffixes.draw();
        (0..SUFFIX_LEN)
            .map(|_| {
                let index = drawn % SUFFIX_ALPHABET.len() as u64;
                drawn /= SUFFIX_ALPHABET.len() as u64;
                char::from(SUFFIX_ALPHABET[usize::try_from(index).unwrap_or_default()])
            })
            .collect()
    }
}

/// SplitMix64: small, and good enough for numbers that are not secret.
#[derive(Clone, Debug)]
pub(crate) struct IdStream(pub(crate) u64);

impl IdStream {
    /// The increment of the state with each draw.
    pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    fn draw_uuid(&mut self) -> String {
        let high = (self.draw() & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (self.draw() & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// The next number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_identifiers() {
        let draw = |seed| {
            let mut ids = Ids::new(seed);
            (ids.next_uid(), ids.next_suffix(), ids.next_uid())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let (first, suffix, second) = draw(7);
        assert_ne!(first, second);
        assert_eq!((first.len(), suffix.len()), (36, SUFFIX_LEN));
        assert_eq!(&first[14..15], "4");
    }
}
