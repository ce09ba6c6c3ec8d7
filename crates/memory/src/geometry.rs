//! The sizes in which domain memory is cut: lines, spans, arenas. Numbers only; the allocator, the backings and the
//! buffers agree on them here.

/// Every lease begins on a multiple of this (a cache line, and what vector loads want).
pub const LINE_BYTES: usize = 64;

/// The piece of an arena that holds blocks of one size class; larger leases take several in a row.
pub const SPAN_BYTES: usize = 32 << 10;

/// Spans in an arena: one bit each in a `u64`.
pub const SPANS_PER_ARENA: u32 = 64;

/// The unit in which memory is committed: one huge page.
pub const ARENA_BYTES: usize = 2 << 20;

const _: () = assert!(SPAN_BYTES * SPANS_PER_ARENA as usize == ARENA_BYTES);

/// How many arenas `bytes` bytes need.
pub(crate) const fn arenas_for(bytes: u64) -> u64 {
    bytes.div_ceil(ARENA_BYTES as u64)
}

/// The first multiple of [`LINE_BYTES`] that is not below `bytes`; `None` past the end of the address space.
pub(crate) const fn round_up_to_line(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(LINE_BYTES)
}
