//! The order in which a reconciling pass begins its chains: random looking, but the same for the
//! same attempt.

/// Attempts that share a shuffle; between them the chains only rotate.
const STRIDE: u32 = 8;

/// Shuffles by the attempt's round, then rotates by its step within the round: whatever chain
/// comes first and is stuck, within [`STRIDE`] attempts others have come first.
pub(super) fn reorder<T>(mut items: Vec<T>, attempt: u32) -> Vec<T> {
    let mut random = SplitMix(u64::from(attempt / STRIDE));
    for upper in (1..items.len()).rev() {
        items.swap(upper, random.below(upper + 1));
    }
    let shift = shift(attempt % STRIDE, STRIDE, items.len());
    items.rotate_left(shift);
    items
}

/// How far `chains` chains are rotated in a step: by one chain each step if there are few, else so
/// that the steps of a round are spread over all of them.
pub(super) fn shift(step: u32, stride: u32, chains: usize) -> usize {
    if chains == 0 {
        return 0;
    }
    let (step, stride) = (step as usize, stride as usize);
    if chains < stride { step % chains } else { (step * chains / stride) % chains }
}

/// The SplitMix64 generator: tiny, and good enough to mix chains.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; the bias of the remainder is far below what a shuffle shows.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a count of chains");
        usize::try_from(self.next() % bound).expect("below a usize")
    }
}
