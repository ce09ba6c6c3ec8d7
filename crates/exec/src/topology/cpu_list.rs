//! The system's way of writing sets of processors and nodes: `0-3,8,10-11`.

/// The numbers in `text`, ascending and each once; `None` when it is malformed. An empty list is a list.
pub(super) fn parse(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // Far above any machine: a file that says more is not what it seems.
        if last < first || last > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_and_single_numbers_mix() {
        assert_eq!(parse("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(parse("\n"), Some(vec![]));
        for bad in ["a", "3-1", "1-", "-1", "0-99999999999"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
