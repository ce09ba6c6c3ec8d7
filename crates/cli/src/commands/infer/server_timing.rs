//! Reads the header `Server-Timing` (W3C): names with durations in milliseconds. It measures nothing.

/// The entries of a header's text that have a duration, in their order: (name, milliseconds). Others are passed over.
pub fn read(header: &str) -> Vec<(&str, f64)> {
    header.split(',').filter_map(entry).collect()
}

fn entry(text: &str) -> Option<(&str, f64)> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()))?;
    let duration = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case("dur").then(|| value.trim().trim_matches('"').parse::<f64>().ok()).flatten()
    })?;
    duration.is_finite().then_some((name, duration))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_with_their_names() {
        assert_eq!(
            read("queue;dur=0.05, device;desc=\"cpu\";dur=1.5,total;dur=\"2\""),
            [("queue", 0.05), ("device", 1.5), ("total", 2.0)]
        );
    }

    #[test]
    fn entries_without_a_duration_are_passed_over() {
        assert_eq!(read(""), []);
        assert_eq!(read("miss, cache;desc=x, ;dur=1, a;dur=x, b;dur=inf, c;dur=3"), [("c", 3.0)]);
    }

    proptest! {
        #[test]
        fn any_text_gives_only_numbers_that_can_be_shown(text in "[ -~;,=\"]{0,60}") {
            prop_assert!(read(&text).iter().all(|(name, duration)| !name.is_empty() && duration.is_finite()));
        }

        #[test]
        fn what_is_written_is_read(entries in proptest::collection::vec(("[a-z]{1,8}", 0.0..1e6_f64), 0..5)) {
            let text = entries.iter().map(|(name, duration)| format!("{name};dur={duration}")).collect::<Vec<_>>().join(", ");
            let expected: Vec<_> = entries.iter().map(|(name, duration)| (name.as_str(), *duration)).collect();
            prop_assert_eq!(read(&text), expected);
        }
    }
}
