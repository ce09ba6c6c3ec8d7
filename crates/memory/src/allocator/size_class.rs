//! Size classes of small leases: which block size a request gets and how many such blocks a span holds. A table and its
//! look-up, nothing else. At most a quarter of a block is lost to rounding (a third at the two largest classes).

use crate::geometry::{LINE_BYTES, SPAN_BYTES};

/// Block sizes in bytes: multiples of a cache line, chosen so that a span holds a whole number with little left over. The
/// smallest gives 128 blocks, so that a `u128` holds one bit for each block of a span.
const SIZES: [u16; 22] = [
    256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6528, 8192,
    10880, 16384,
];

/// The largest lease that is served from a block of a span.
pub(crate) const LARGEST_BLOCK: usize = SIZES[SIZES.len() - 1] as usize;

const LINES: usize = LARGEST_BLOCK / LINE_BYTES;

/// The class for a request of so many cache lines.
const BY_LINES: [u8; LINES + 1] = {
    let mut table = [0u8; LINES + 1];
    let mut class = 0;
    let mut lines = 0;
    while lines <= LINES {
        while (SIZES[class] as usize) < lines * LINE_BYTES {
            class += 1;
        }
        table[lines] = class as u8;
        lines += 1;
    }
    table
};

/// One of the block sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeClass(u8);

impl SizeClass {
    /// How many classes there are.
    pub(crate) const COUNT: usize = SIZES.len();

    /// The smallest class whose blocks hold `bytes`; `None` when a block is too small for it.
    pub(crate) fn of(bytes: usize) -> Option<SizeClass> {
        BY_LINES.get(bytes.div_ceil(LINE_BYTES)).map(|class| SizeClass(*class))
    }

    /// The class's number, below [`SizeClass::COUNT`].
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Bytes of one block.
    pub(crate) fn block_bytes(self) -> usize {
        usize::from(SIZES[self.index()])
    }

    /// Blocks in one span.
    pub(crate) fn blocks(self) -> u32 {
        (SPAN_BYTES / self.block_bytes()) as u32
    }

    /// One set bit for each block of a span.
    pub(crate) fn all_blocks(self) -> u128 {
        u128::MAX >> (u128::BITS - self.blocks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_block_that_holds_it() {
        for bytes in 0..=LARGEST_BLOCK {
            let class = SizeClass::of(bytes).unwrap();
            assert!(class.block_bytes() >= bytes);
            assert!(class.index() == 0 || usize::from(SIZES[class.index() - 1]) < bytes, "{bytes}");
        }
        assert_eq!(SizeClass::of(LARGEST_BLOCK + 1), None);
        assert_eq!(SizeClass::of(usize::MAX), None);
    }

    #[test]
    fn blocks_are_whole_lines_and_fit_their_span() {
        for (index, size) in SIZES.iter().enumerate() {
            let class = SizeClass(index as u8);
            assert_eq!(usize::from(*size) % LINE_BYTES, 0);
            assert!((1..=128).contains(&class.blocks()));
            assert_eq!(class.all_blocks().count_ones(), class.blocks());
        }
    }

    #[test]
    fn little_is_lost_to_rounding() {
        for bytes in 256..=LARGEST_BLOCK {
            let block = SizeClass::of(bytes).unwrap().block_bytes();
            let share = if bytes <= 8192 { 4 } else { 3 };
            assert!((block - bytes) * share < block + share * LINE_BYTES, "{bytes} in {block}");
        }
    }
}
