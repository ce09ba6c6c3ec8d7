//! Sizes in bytes as people write them: `"256MiB"`, `"64KiB"`, `"1GiB"` or a plain number of bytes. Strict: whole numbers,
//! binary units, no sign, no fraction, no spaces. Tenant documents use it for memory limits.

/// What a size must look like, for messages.
pub const FORM: &str = "a whole number of bytes, or one with KiB, MiB or GiB behind it, such as \"256MiB\"";

/// The number of bytes that `text` stands for; `None` if it is not a size or does not fit 64 bits.
pub fn parse(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `bytes` in the largest unit that leaves a whole number; [`parse`] leads back to it.
pub fn format(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_in_binary_units() {
        for (text, bytes) in [("0", 0), ("1", 1), ("64KiB", 65_536), ("256MiB", 268_435_456), ("3GiB", 3_221_225_472)] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_a_size() {
        for text in
            ["", "KiB", "1KB", "1MB", "1 MiB", " 1", "+1", "-1", "1.5MiB", "1mib", "1MiB ", "1TiB", "0x10", "1_000"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse("18446744073709551616"), None);
        assert_eq!(parse("17179869184GiB"), None);
    }

    proptest! {
        #[test]
        fn a_formatted_size_is_read_back(bytes in any::<u64>(), shift in 0_u32..40) {
            let bytes = bytes << shift;
            prop_assert_eq!(parse(&format(bytes)), Some(bytes));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = parse(&text);
        }
    }
}
