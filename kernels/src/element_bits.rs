//! Elements as bits of a size: what moves tensors asks how wide an element is and nothing else. It converts nothing; the
//! kernels that move elements dispatch here, once a call.

/// Runs `$body` with `$T` standing for the unsigned integer of `$size` bytes: 1, 2, 4 or 8.
macro_rules! by_element_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            other => crate::element_bits::odd_size(other),
        }
    };
}
pub(crate) use by_element_size;

/// Refuses elements of another size: the caller's defect.
#[cold]
#[allow(clippy::panic, reason = "an element of another size is a defect of the caller")]
pub(crate) fn odd_size(size: usize) -> ! {
    panic!("elements of {size} bytes cannot be moved");
}
