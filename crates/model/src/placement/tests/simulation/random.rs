//! Random numbers that are the same for the same seed.

/// A generator of random numbers (`SplitMix64`).
#[derive(Debug)]
pub(super) struct SeededRandom(pub(super) u64);

impl SeededRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `least` to `most`.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Returns true once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.between(1, times) == 1
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % length as u64).expect("it is below the length")
    }
}
