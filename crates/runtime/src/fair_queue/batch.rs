//! A formed batch, the ticket that settles it, and a batch while it is being formed. A ticket is used up by
//! [`complete`](super::FairQueue::complete), so no batch can be settled twice.

use std::time::Duration;

use insula_core::Nanos;
use smallvec::SmallVec;

use super::entry::{PlanKey, TenantSlot};
use super::estimate::CostCurve;

/// Entries that run in one launch.
#[derive(Debug)]
pub struct Batch<C> {
    /// The plan they run on.
    pub plan: PlanKey,
    /// Their rows, padding not counted.
    pub rows: u32,
    /// The rows the device runs, padding included.
    pub bucket_rows: u32,
    /// The device time it is expected to take.
    pub predicted: Duration,
    /// The entries; the leader is first.
    pub entries: Vec<BatchEntry<C>>,
    /// To be handed back when the batch has ended.
    pub ticket: BatchTicket,
}

/// One entry of a batch.
#[derive(Debug)]
pub struct BatchEntry<C> {
    /// What claiming the entry gave.
    pub item: C,
    /// Whose it is.
    pub tenant: TenantSlot,
    /// Its rows.
    pub rows: u32,
    /// Whether it fills rows that would have been padding, at no charge.
    pub free: bool,
}

/// Who paid how much for a batch. Hand it to [`complete`](super::FairQueue::complete) however the batch ended.
#[derive(Debug)]
#[must_use = "a batch that is never completed counts as running for ever"]
pub struct BatchTicket {
    pub(super) epoch: u64,
    pub(super) plan: PlanKey,
    pub(super) rows: u32,
    pub(super) predicted: u64,
    pub(super) charges: SmallVec<[Charge; 2]>,
}

impl BatchTicket {
    /// How many entries were charged.
    pub fn entries(&self) -> u64 {
        self.charges.len() as u64
    }
}

/// What one entry paid when it was chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    pub(super) tenant: TenantSlot,
    pub(super) incarnation: u64,
    pub(super) rows: u32,
    pub(super) paid: u64,
}

/// How a batch ended.
#[derive(Debug, Clone, Copy)]
pub enum Settlement<'a> {
    /// It ran as formed and took this much device time: shared by the charged rows, and remembered for estimates.
    Measured(Duration),
    /// It was run in parts, or a part failed: what each tenant is to bear. Who is not named bears nothing.
    PerTenant(&'a [(TenantSlot, Duration)]),
}

/// What a tenant bore of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceShare {
    /// The tenant.
    pub tenant: TenantSlot,
    /// Its part of the device time.
    pub device: Duration,
    /// What it had paid too much and did not get back, since a tag never falls below V.
    pub forgone: Duration,
}

/// A batch while it is being formed. It lies outside of the queue so that a panic under way loses no claimed entry.
#[derive(Debug)]
pub struct Forming<E, C> {
    pub(super) draft: Option<Draft>,
    pub(super) entries: Vec<BatchEntry<C>>,
    pub(super) charges: SmallVec<[Charge; 2]>,
    pub(super) dead: Vec<E>,
    pub(super) held_until: Option<Nanos>,
}

impl<E, C> Default for Forming<E, C> {
    fn default() -> Self {
        Forming { draft: None, entries: Vec::new(), charges: SmallVec::new(), dead: Vec::new(), held_until: None }
    }
}

/// What is fixed by the leader, and the rows so far.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) plan: PlanKey,
    pub(super) tenant: TenantSlot,
    pub(super) unmixed: bool,
    pub(super) max_batch: u32,
    pub(super) curve: CostCurve,
    /// The device time the batch may take.
    pub(super) limit: u64,
    pub(super) rows: u32,
}

/// What came of forming a batch.
#[derive(Debug)]
pub struct Formed<E, C> {
    /// The batch, if there was anything to run.
    pub batch: Option<Batch<C>>,
    /// Entries that could not be claimed and have left the queue.
    pub dead: Vec<E>,
    /// Without a batch: entries wait, and are held back for more rows until then.
    pub held_until: Option<Nanos>,
    /// Without a batch: as many dead entries were dropped as may be at once. Ask again.
    pub more: bool,
}
