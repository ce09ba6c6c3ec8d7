//! Puts tensors behind each other along an axis. Elements are bytes; nothing is computed.

use std::ops::Range;

/// Writes the blocks `blocks` of `out`: one block of each input after the other. An input's block is its bytes from the axis on
/// for one position of the axes before it, `block_bytes` of them for each input. All tensors are whole.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn concat<'a>(blocks: Range<usize>, block_bytes: &[usize], input: impl Fn(usize) -> &'a [u8], out: &mut [u8]) {
    let whole: usize = block_bytes.iter().sum();
    let mut start = 0;
    for (index, &bytes) in block_bytes.iter().enumerate() {
        let input = input(index);
        for block in blocks.clone() {
            let to = block * whole + start;
            out[to..to + bytes].copy_from_slice(&input[block * bytes..(block + 1) * bytes]);
        }
        start += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_alternate() {
        let inputs: [&[u8]; 3] = [&[1, 2, 3, 4], &[], &[5, 6]];
        let mut out = [0; 6];
        concat(0..1, &[2, 0, 1], |index| inputs[index], &mut out);
        assert_eq!(out, [1, 2, 5, 0, 0, 0]);
        concat(1..2, &[2, 0, 1], |index| inputs[index], &mut out);
        assert_eq!(out, [1, 2, 5, 3, 4, 6]);
    }
}
