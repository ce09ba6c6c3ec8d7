//! Tables of well-formed and malformed headers, and that no bytes make the reader panic.

use proptest::prelude::*;

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn parent(traceparent: &str) -> Option<RemoteParent> {
    RemoteParent::from_headers([traceparent.as_bytes()], [])
}

fn with_state(states: &[&str]) -> String {
    let value = format!("00-{TRACE}-{SPAN}-01");
    let states = states.iter().map(|state| state.as_bytes());
    RemoteParent::from_headers([value.as_bytes()], states).unwrap().0.trace_state().header()
}

#[test]
fn well_formed_parents_are_taken_over() {
    for (value, sampled) in [
        (format!("00-{TRACE}-{SPAN}-01"), true),
        (format!("00-{TRACE}-{SPAN}-00"), false),
        (format!("00-{TRACE}-{SPAN}-ff"), true),
        (format!("00-{TRACE}-{SPAN}-fe"), false),
        (format!("  00-{TRACE}-{SPAN}-01\t"), true),
        (format!("cc-{TRACE}-{SPAN}-01"), true),
        (format!("cc-{TRACE}-{SPAN}-01-what-the-future-brings"), true),
        (format!("cc-{TRACE}-{SPAN}-01-"), true),
    ] {
        let RemoteParent(context) = parent(&value).unwrap_or_else(|| panic!("{value:?} was ignored"));
        assert_eq!(context.trace_id().to_string(), TRACE);
        assert_eq!(context.span_id().to_string(), SPAN);
        assert_eq!(context.trace_flags().to_u8(), u8::from(sampled), "{value:?}");
        assert!(context.is_remote());
    }
}

#[test]
fn malformed_parents_are_ignored() {
    let zeros = "0".repeat(32);
    for value in [
        String::new(),
        "00".to_owned(),
        format!("ff-{TRACE}-{SPAN}-01"),
        format!("0-{TRACE}-{SPAN}-01"),
        format!("0x-{TRACE}-{SPAN}-01"),
        format!("00-{zeros}-{SPAN}-01"),
        format!("00-{TRACE}-0000000000000000-01"),
        format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
        format!("00-{TRACE}-{SPAN}-0"),
        format!("00-{TRACE}-{SPAN}-0g"),
        format!("00-{TRACE}-{SPAN}-01-more"),
        format!("00-{TRACE}-{SPAN}-01-"),
        format!("cc-{TRACE}-{SPAN}-01more"),
        format!("00-{}-{SPAN}-01", &TRACE[1..]),
        format!("00-{TRACE}0-{SPAN}-01"),
        format!("00-{TRACE}-{SPAN}01-"),
        format!("00_{TRACE}_{SPAN}_01"),
        format!("00-{TRACE}-{SPAN}--1"),
        format!("00-+{}-{SPAN}-01", &TRACE[1..]),
        format!("00-{TRACE}-{SPAN}-ä"),
    ] {
        assert_eq!(parent(&value), None, "{value:?} was taken over");
    }
}

#[test]
fn more_than_one_parent_is_none() {
    let value = format!("00-{TRACE}-{SPAN}-01");
    assert_eq!(RemoteParent::from_headers([value.as_bytes(), value.as_bytes()], []), None);
    assert_eq!(RemoteParent::from_headers([], []), None);
}

#[test]
fn states_are_joined_in_order() {
    assert_eq!(with_state(&["a=1,b=2", " c=3 "]), "a=1,b=2,c=3");
    assert_eq!(with_state(&["", "a=1,, ,b=2"]), "a=1,b=2");
    assert_eq!(with_state(&["1tenant@sys=x y", "a_-*/0=~!"]), "1tenant@sys=x y,a_-*/0=~!");
    assert_eq!(with_state(&[]), "");
    let most: Vec<String> = (0..32).map(|n| format!("k{n}=v")).collect();
    assert_eq!(with_state(&[&most.join(",")]), most.join(","));
}

#[test]
fn a_malformed_state_is_left_out_whole_and_the_parent_kept() {
    let long_key = format!("{}=1", "a".repeat(257));
    let long_value = format!("a={}", "v".repeat(257));
    let too_many: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
    let too_long: Vec<String> = (0..20).map(|n| format!("key-number-{n:02}=twelve-bytes")).collect();
    for state in [
        "a",
        "=1",
        "a=",
        "A=1",
        "1a=1",
        "a b=1",
        "a=1,a=2",
        "a=b=c",
        "a=\u{7f}",
        "a=ä",
        "@a=1",
        "a@=1",
        "a@1b=1",
        "a@b@c=1",
        &long_key,
        &long_value,
        &too_many.join(","),
        &too_long.join(","),
    ] {
        assert_eq!(with_state(&["good=1", state]), "", "{state:?}");
    }
}

proptest! {
    #[test]
    fn no_headers_make_it_panic(
        parents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..3),
        states in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..3),
    ) {
        let _ = RemoteParent::from_headers(parents.iter().map(Vec::as_slice), states.iter().map(Vec::as_slice));
    }

    #[test]
    fn every_well_formed_parent_comes_back(trace in 1_u128.., span in 1_u64.., flags in any::<u8>()) {
        let RemoteParent(context) = parent(&format!("00-{trace:032x}-{span:016x}-{flags:02x}")).unwrap();
        prop_assert_eq!(context.trace_id(), TraceId::from(trace));
        prop_assert_eq!(context.span_id(), SpanId::from(span));
        prop_assert_eq!(context.is_sampled(), flags & 1 == 1);
    }
}
