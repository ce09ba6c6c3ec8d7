//! How often a value fell into which range, counted with two atomic additions an observation. The count that is rendered is
//! the sum of the buckets as they were read, so that a scrape in the middle of an observation is still consistent in itself.

use std::time::Duration;

use super::counter::{Counter, nanos};

/// Upper bounds for times, in nanoseconds: from a quarter of a millisecond to half a minute.
const TIME_BOUNDS: [u64; 16] = {
    const MICROSECOND: u64 = 1_000;
    const MILLISECOND: u64 = 1_000_000;
    const SECOND: u64 = 1_000_000_000;
    [
        250 * MICROSECOND,
        500 * MICROSECOND,
        MILLISECOND,
        2_500 * MICROSECOND,
        5 * MILLISECOND,
        10 * MILLISECOND,
        25 * MILLISECOND,
        50 * MILLISECOND,
        100 * MILLISECOND,
        250 * MILLISECOND,
        500 * MILLISECOND,
        SECOND,
        2_500 * MILLISECOND,
        5 * SECOND,
        10 * SECOND,
        30 * SECOND,
    ]
};

/// Upper bounds for rows of a batch: the sizes that plans are built for, and beyond.
const ROW_BOUNDS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// A histogram of `N` bounded buckets and one without bound.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    bounds: &'static [u64; N],
    /// What a value is divided by when it is shown.
    unit: f64,
    buckets: [Counter; N],
    beyond: Counter,
    sum: Counter,
}

/// Times in seconds.
pub(crate) type TimeHistogram = Histogram<{ TIME_BOUNDS.len() }>;

/// Rows of batches.
pub(crate) type RowHistogram = Histogram<{ ROW_BOUNDS.len() }>;

impl TimeHistogram {
    pub(crate) fn of_times() -> TimeHistogram {
        Histogram::new(&TIME_BOUNDS, 1e9)
    }

    pub(crate) fn observe_time(&self, time: Duration) {
        self.observe(nanos(time));
    }
}

impl RowHistogram {
    pub(crate) fn of_rows() -> RowHistogram {
        Histogram::new(&ROW_BOUNDS, 1.0)
    }
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: &'static [u64; N], unit: f64) -> Histogram<N> {
        let buckets = std::array::from_fn(|_| Counter::default());
        Histogram { bounds, unit, buckets, beyond: Counter::default(), sum: Counter::default() }
    }

    /// Counts `value` in the first bucket whose bound is not below it.
    pub(crate) fn observe(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.buckets.get(bucket).unwrap_or(&self.beyond).add(1);
        self.sum.add(value);
    }

    /// The figures as they are; `None` while there are none.
    pub(crate) fn read(&self) -> Option<HistogramFigures> {
        let bounded = self.bounds.iter().map(|bound| *bound as f64 / self.unit);
        let bounds = bounded.chain(std::iter::once(f64::INFINITY));
        let counts = self.buckets.iter().chain(std::iter::once(&self.beyond)).map(Counter::get);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        (count > 0).then(|| HistogramFigures { sum: self.sum.get() as f64 / self.unit, count, buckets })
    }
}

/// What a histogram shows in one scrape.
#[derive(Debug)]
pub(crate) struct HistogramFigures {
    pub(crate) sum: f64,
    pub(crate) count: u64,
    /// Upper bound and count of each bucket by itself, the last without bound.
    pub(crate) buckets: Vec<(f64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_belongs_to_its_bucket() {
        let rows = RowHistogram::of_rows();
        for value in [0, 1, 2, 3, 4, 128, 129, u64::MAX - 1000] {
            rows.observe(value);
        }
        let counts: Vec<u64> = rows.read().unwrap().buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 2, 0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn times_are_shown_in_seconds() {
        let times = TimeHistogram::of_times();
        assert!(times.read().is_none());
        times.observe_time(Duration::from_millis(1500));
        times.observe_time(Duration::from_secs(60));
        let figures = times.read().unwrap();
        assert_eq!((figures.sum, figures.count), (61.5, 2));
        assert_eq!(figures.buckets[12], (2.5, 1));
        assert_eq!(figures.buckets[16], (f64::INFINITY, 1));
    }

    #[test]
    fn observations_from_many_threads_are_all_there() {
        let rows = RowHistogram::of_rows();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let rows = &rows;
                scope.spawn(move || (0..10_000).for_each(|_| rows.observe(1 << thread)));
            }
        });
        let figures = rows.read().unwrap();
        assert_eq!((figures.count, figures.sum), (40_000, 150_000.0));
    }
}
