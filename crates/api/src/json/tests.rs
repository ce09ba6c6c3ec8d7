//! The reader against serde_json, an independent one: both accept the same texts.

use proptest::prelude::*;

use super::number::Number;
use super::reader::{Event, MAX_DEPTH, Reader};
use super::string::plain_run;

/// Whether the reader takes `text` as one JSON value, in steps of `budget` bytes.
fn accepts(text: &[u8], budget: usize) -> bool {
    let mut reader = Reader::new();
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps < 10 + 3 * text.len(), "no progress in {:?}", String::from_utf8_lossy(text));
        match reader.next(text, reader.position() + budget) {
            Ok(Some(Event::End)) => return true,
            Ok(Some(Event::Trailing)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// What serde_json says; `None` where it refuses a number for its size, which is not a matter of syntax.
fn serde_accepts(text: &[u8]) -> Option<bool> {
    match serde_json::from_slice::<serde_json::Value>(text) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) => Some(false),
    }
}

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let parts: Vec<&'static [u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"a\"",
        b"\"",
        b"\\",
        b"\\n",
        b"\\u00e9",
        b"\\ud83d\\ude00",
        b"\\ud83d",
        b"\\udc00",
        b"\\u12",
        b"\xc3\xa9",
        b"\xc3",
        b"\xff",
        b"\xed\xa0\x80",
        b"0",
        b"1",
        b"-",
        b"01",
        b"1.5",
        b"1.",
        b".5",
        b"e",
        b"e+1",
        b"E-2",
        b"true",
        b"false",
        b"null",
        b"nul",
        b"NaN",
        b" ",
        b"\n",
        b"\t",
        b"\r",
        b"\0",
        b"\x1f",
        b"\x7f",
        b"abcdefghij",
        b"\xe2\x82\xac",
    ];
    proptest::collection::vec(proptest::sample::select(parts), 0..12).prop_map(|parts| parts.concat())
}

fn valid() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,10}".prop_map(Into::into),
    ];
    let value = leaf.prop_recursive(5, 30, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            proptest::collection::hash_map(".{0,5}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    (value, any::<bool>()).prop_map(|(value, pretty)| {
        if pretty { serde_json::to_vec_pretty(&value).unwrap() } else { serde_json::to_vec(&value).unwrap() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_fragments_are_judged_as_serde_json_judges_them(text in fragments(), budget in 1usize..20) {
        if let Some(expected) = serde_accepts(&text) {
            prop_assert_eq!(accepts(&text, budget), expected, "{:?}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn strings_of_any_fragments_are_judged_as_serde_json_judges_them(inside in fragments(), budget in 1usize..20) {
        let text = [b"[\"", &inside[..], b"\"]"].concat();
        if let Some(expected) = serde_accepts(&text) {
            prop_assert_eq!(accepts(&text, budget), expected, "{:?}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn valid_texts_are_accepted_and_damaged_ones_judged_alike(text in valid(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
                                                              budget in 1usize..40) {
        prop_assert!(accepts(&text, budget), "{:?}", String::from_utf8_lossy(&text));
        let mut damaged = text;
        let at = at.index(damaged.len());
        damaged[at] = byte;
        if let Some(expected) = serde_accepts(&damaged) {
            prop_assert_eq!(accepts(&damaged, budget), expected, "{:?}", String::from_utf8_lossy(&damaged));
        }
    }

    #[test]
    fn numbers_have_the_value_that_the_standard_library_gives_them(
        text in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][-+]?[0-9]{1,2})?"
    ) {
        let number = Number::scan(text.as_bytes(), 0).unwrap();
        prop_assert_eq!(number.end, text.len());
        prop_assert_eq!(number.to_f64(text.as_bytes()).to_bits(), text.parse::<f64>().unwrap().to_bits());
        prop_assert_eq!(number.to_f32(text.as_bytes()).to_bits(), text.parse::<f32>().unwrap().to_bits());
        prop_assert_eq!(number.unsigned(text.as_bytes(), u64::MAX), text.parse::<u64>().ok().or((text == "-0").then_some(0)));
        prop_assert_eq!(number.signed(text.as_bytes(), i64::MIN, i64::MAX), text.parse::<i64>().ok());
    }

    #[test]
    fn a_plain_run_ends_where_a_byte_by_byte_search_says(bytes in proptest::collection::vec(
        prop_oneof![10 => 0x20u8..0x7f, 1 => any::<u8>(), 1 => Just(b'"'), 1 => Just(0x80)], 0..40)) {
        let expected = bytes.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
        prop_assert_eq!(plain_run(&bytes), expected.unwrap_or(bytes.len()));
    }
}

#[test]
fn nesting_is_allowed_to_the_limit_and_no_further() {
    for (depth, expected) in [(1, true), (MAX_DEPTH, true), (MAX_DEPTH + 1, false), (1_000_000, false)] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(accepts(arrays.as_bytes(), 7), expected, "{depth} arrays");
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(accepts(objects.as_bytes(), 7), expected, "{depth} objects");
    }
}

#[test]
fn a_number_near_a_midpoint_of_f32_is_rounded_once() {
    for text in [
        "1.000000059604644775390625",
        "1.00000005960464477539062500001",
        "16777217",
        "16777219",
        "7.0064923216240853e-46",
    ] {
        let number = Number::scan(text.as_bytes(), 0).unwrap();
        assert_eq!(number.to_f32(text.as_bytes()).to_bits(), text.parse::<f32>().unwrap().to_bits(), "{text}");
    }
}
