//! What device time a batch will take: a moving median of what batches of the same plan and bucket took, and what stands in
//! for it until there is one. Bounded in size. The fair queue asks before it forms a batch and tells afterwards.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::constants::{ESTIMATE_PLANS, ESTIMATE_WINDOW};
use super::entry::{PlanKey, PlanMap};

/// Medians of measured device time by plan and bucket.
#[derive(Debug)]
pub struct Estimator {
    recent: PlanMap<PlanTimes>,
    older: PlanMap<PlanTimes>,
    /// How many buckets have which median; its last key is the largest on the shard.
    medians: BTreeMap<u64, usize>,
    blank: u64,
}

type PlanTimes = SmallVec<[BucketTimes; 6]>;

/// The latest measurements of one bucket, as a ring.
#[derive(Debug, Clone, Default)]
struct BucketTimes {
    samples: [u64; ESTIMATE_WINDOW],
    count: usize,
    next: usize,
    median: u64,
}

impl BucketTimes {
    fn add(&mut self, nanos: u64) {
        self.samples[self.next] = nanos;
        self.next = (self.next + 1) % ESTIMATE_WINDOW;
        self.count = (self.count + 1).min(ESTIMATE_WINDOW);
        let mut sorted = self.samples;
        let known = &mut sorted[..self.count];
        known.sort_unstable();
        // Of an even number the lower one: the second measurement of all must not pass for a lasting change.
        self.median = known[(self.count - 1) / 2];
    }
}

impl Estimator {
    /// An estimator that says `blank` ns of a batch as long as it has seen none at all.
    pub fn new(blank: u64) -> Estimator {
        Estimator { recent: PlanMap::default(), older: PlanMap::default(), medians: BTreeMap::new(), blank }
    }

    /// Learns that a batch of `rows` rows took `nanos` of device time.
    pub fn record(&mut self, plan: PlanKey, rows: u32, nanos: u64) {
        self.promote(plan);
        let times = self.recent.entry(plan).or_default();
        let index = bucket_index(rows);
        if times.len() <= index {
            times.resize(index + 1, BucketTimes::default());
        }
        let bucket = &mut times[index];
        let before = (bucket.count > 0).then_some(bucket.median);
        bucket.add(nanos.max(1));
        let after = bucket.median;
        if let Some(before) = before {
            forget_median(&mut self.medians, before);
        }
        *self.medians.entry(after).or_insert(0) += 1;
    }

    /// Moves `plan` to the recent generation, and starts a new one when that is full.
    fn promote(&mut self, plan: PlanKey) {
        if self.recent.contains_key(&plan) {
            return;
        }
        let kept = self.older.remove(&plan);
        if self.recent.len() >= ESTIMATE_PLANS {
            let forgotten = std::mem::replace(&mut self.older, std::mem::take(&mut self.recent));
            for bucket in forgotten.into_values().flatten().filter(|bucket| bucket.count > 0) {
                forget_median(&mut self.medians, bucket.median);
            }
        }
        if let Some(times) = kept {
            self.recent.insert(plan, times);
        }
    }

    /// What batches of `plan` will take, by their rows.
    pub fn curve(&self, plan: PlanKey, max_batch: u32) -> CostCurve {
        let times = self.recent.get(&plan).or_else(|| self.older.get(&plan)).map_or(&[][..], |times| times);
        let mut curve = CostCurve { max_batch: max_batch.max(1), costs: SmallVec::new() };
        let mut floor = 0;
        for index in 0..=bucket_index(curve.max_batch) {
            floor = self.bucket_estimate(times, index, curve.bucket_rows(power(index))).max(floor);
            curve.costs.push(floor);
        }
        curve
    }

    /// The median of bucket `index`; unknown, the next smaller bucket scaled by rows; else the next larger one, which
    /// bounds it from above; else the largest median on the shard.
    fn bucket_estimate(&self, times: &[BucketTimes], index: usize, rows: u32) -> u64 {
        let known = |bucket: &&BucketTimes| bucket.count > 0;
        if let Some(bucket) = times.get(index).filter(known) {
            return bucket.median;
        }
        let smaller = (0..index.min(times.len())).rev().find(|smaller| times[*smaller].count > 0);
        if let Some(smaller) = smaller {
            let scaled = (u128::from(times[smaller].median) * u128::from(rows)) >> smaller;
            return u64::try_from(scaled).unwrap_or(u64::MAX);
        }
        let larger = times.iter().skip(index).find(known).map(|bucket| bucket.median);
        larger.or_else(|| self.medians.last_key_value().map(|(median, _)| *median)).unwrap_or(self.blank)
    }
}

fn forget_median(medians: &mut BTreeMap<u64, usize>, median: u64) {
    if let Some(count) = medians.get_mut(&median) {
        *count -= 1;
        if *count == 0 {
            medians.remove(&median);
        }
    }
}

/// Bucket number of `rows` rows: buckets are 1, 2, 4, 8, ... rows.
fn bucket_index(rows: u32) -> usize {
    (32 - rows.saturating_sub(1).leading_zeros()) as usize
}

/// 2 to the power of `index`, or the largest number.
fn power(index: usize) -> u32 {
    u32::try_from(index).ok().and_then(|index| 1u32.checked_shl(index)).unwrap_or(u32::MAX)
}

/// The device time of a plan's batches by their rows, never falling as rows are added.
#[derive(Debug, Clone)]
pub struct CostCurve {
    max_batch: u32,
    costs: SmallVec<[u64; 8]>,
}

impl CostCurve {
    /// Nanoseconds for a batch of `rows` rows; 0 for none.
    pub fn cost(&self, rows: u32) -> u64 {
        if rows == 0 {
            return 0;
        }
        let index = bucket_index(rows).min(self.costs.len() - 1);
        self.costs[index]
    }

    /// The rows that the device runs for a batch of `rows`: the bucket's, at most the model's largest batch.
    pub fn bucket_rows(&self, rows: u32) -> u32 {
        rows.checked_next_power_of_two().unwrap_or(u32::MAX).min(self.max_batch)
    }

    /// The rows of the largest bucket that takes at most `limit` ns; at least one.
    pub fn rows_within(&self, limit: u64) -> u32 {
        let fitting = self.costs.iter().take_while(|cost| **cost <= limit).count();
        self.bucket_rows(power(fitting.saturating_sub(1)))
    }

    /// Nanoseconds for `rows` rows that are run in batches of at most `limit` ns.
    pub fn backlog(&self, rows: u64, limit: u64) -> u64 {
        let batch = self.rows_within(limit);
        let (full, rest) = (rows / u64::from(batch), rows % u64::from(batch));
        // The remainder of a division by a u32 fits one.
        full.saturating_mul(self.cost(batch)).saturating_add(self.cost(rest as u32))
    }
}

#[cfg(test)]
mod tests;
