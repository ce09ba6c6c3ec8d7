//! How many cases the property tests of this crate run: few under Miri, which is a thousand times slower and has no files.

use proptest::test_runner::Config;

/// A configuration of `cases` cases that keeps nothing on disk.
pub(crate) fn cases(cases: u32) -> Config {
    Config { cases: if cfg!(miri) { cases.min(4) } else { cases }, failure_persistence: None, ..Config::default() }
}
