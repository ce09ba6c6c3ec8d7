//! A device in virtual time under a fair queue: arrivals, batches in flight and their ends, with the queue's rules checked at
//! every step. The property tests feed it; it uses no clock and no thread.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use insula_core::Nanos;
use insula_runtime::fair_queue::{
    Batch, BatchTicket, Entry, FairQueue, FairQueueSettings, PlanKey, Rows, Settlement, Tag, TenantSlot, Weight,
};

/// C.
pub const SLICE: u64 = 5_000_000;

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    pub tenant: usize,
    pub plan: usize,
    pub rows: u32,
    pub priority: u32,
    pub arrives: u64,
    /// Its caller leaves at this time, unless it was dispatched before.
    pub leaves: u64,
}

/// What a plan's batches take: `base + per_row * bucket`.
#[derive(Debug, Clone)]
pub struct PlanCost {
    pub base: u64,
    pub per_row: u64,
    pub max_batch: u32,
    /// The first estimates are the true cost times this.
    pub estimate_factor: f64,
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub weights: Vec<f64>,
    pub plans: Vec<PlanCost>,
    pub requests: Vec<Request>,
    pub workers: usize,
    /// Batch number i takes its true cost times element i of this, round robin.
    pub noise: Vec<f64>,
}

/// What is accounted of a tenant while the scenario runs; nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Device time it bore.
    pub served: f64,
    /// Refunds it did not get because its tag would have fallen below V.
    pub forgone: f64,
    /// The most that one batch took longer than it had paid for.
    pub worst_correction: f64,
    /// Longest time from arrival to the end of a batch.
    pub worst_latency: u64,
}

struct Flight {
    ends: u64,
    measured: u64,
    ticket: BatchTicket,
    requests: Vec<usize>,
    paid: BTreeMap<usize, f64>,
}

/// A request's place in its tenant's order: urgency, arrival, number.
type Turn = (u32, u64, usize);

pub struct Simulator<'a> {
    pub scenario: &'a Scenario,
    pub queue: FairQueue<usize>,
    pub now: u64,
    pub accounts: Vec<Account>,
    /// The requests in the order of dispatch, batch by batch.
    pub dispatched: Vec<Vec<usize>>,
    /// The longest of C and all batches' predictions.
    pub longest: f64,
    dead: Vec<usize>,
    flights: Vec<Flight>,
    /// Requests that wait, by tenant and plan, in the order in which they must come up.
    waiting: BTreeMap<(usize, usize), BinaryHeap<Reverse<Turn>>>,
}

impl<'a> Simulator<'a> {
    pub fn new(scenario: &'a Scenario) -> Self {
        let settings = FairQueueSettings { slice: Duration::from_nanos(SLICE), max_queue_delay: Duration::ZERO };
        let mut queue = FairQueue::new(settings);
        for (index, plan) in scenario.plans.iter().enumerate() {
            for bucket in (0..6).map(|power| 1 << power).filter(|bucket| *bucket <= plan.max_batch) {
                let estimate = (plan.base + plan.per_row * u64::from(bucket)) as f64 * plan.estimate_factor;
                queue.learn(PlanKey(index as u64), bucket, Duration::from_nanos(estimate as u64));
            }
        }
        let accounts = vec![Account::default(); scenario.weights.len()];
        let (dispatched, dead, flights, waiting) = Default::default();
        Simulator { scenario, queue, now: 0, accounts, dispatched, longest: SLICE as f64, dead, flights, waiting }
    }

    /// Runs to the end; `observe` sees every state in which something has just changed.
    pub fn run(&mut self, mut observe: impl FnMut(&Self)) {
        let mut order: Vec<usize> = (0..self.scenario.requests.len()).collect();
        order.sort_by_key(|request| self.scenario.requests[*request].arrives);
        let mut coming = order.into_iter().peekable();
        loop {
            self.dispatch(&mut observe);
            let arrival = coming.peek().map(|request| self.scenario.requests[*request].arrives);
            let end = self.flights.iter().map(|flight| flight.ends).min();
            let Some(next) = arrival.into_iter().chain(end).min() else { break };
            self.now = next;
            if end == Some(next) {
                self.land(next);
            } else if let Some(request) = coming.next() {
                self.arrive(request);
            }
            observe(self);
        }
        self.check_nothing_is_lost();
    }

    pub fn weight(&self, tenant: usize) -> f64 {
        Weight::new(self.scenario.weights[tenant]).get()
    }

    pub fn is_backlogged(&self, tenant: usize) -> bool {
        self.queue.tenant_use(TenantSlot(tenant as u32)).is_some_and(|known| known.queued > 0)
    }

    fn finish(&self, tenant: usize) -> Tag {
        self.queue.tenant_use(TenantSlot(tenant as u32)).map_or(Tag::ZERO, |known| known.finish)
    }

    fn arrive(&mut self, number: usize) {
        let request = &self.scenario.requests[number];
        let max_batch = self.scenario.plans[request.plan].max_batch as usize;
        self.queue.push(Entry {
            tenant: TenantSlot(request.tenant as u32),
            weight: Weight::new(self.scenario.weights[request.tenant]),
            plan: PlanKey(request.plan as u64),
            rows: Rows::new(request.rows as usize, max_batch).unwrap(),
            priority: request.priority,
            arrived: Nanos(request.arrives),
            unmixed: false,
            item: number,
        });
        let turn = Reverse(self.turn(number));
        self.waiting.entry((request.tenant, request.plan)).or_default().push(turn);
    }

    fn turn(&self, number: usize) -> Turn {
        let request = &self.scenario.requests[number];
        (request.priority.wrapping_sub(1), request.arrives, number)
    }

    fn has_left(&self, request: usize) -> bool {
        self.scenario.requests[request].leaves <= self.now
    }

    /// Fills the workers that are free.
    fn dispatch(&mut self, observe: &mut impl FnMut(&Self)) {
        while self.flights.len() < self.scenario.workers {
            let before: Vec<Tag> = (0..self.accounts.len()).map(|tenant| self.finish(tenant)).collect();
            let virtual_before = self.queue.virtual_time();
            let (requests, now) = (&self.scenario.requests, self.now);
            let claim = |number: usize| if requests[number].leaves <= now { Err(number) } else { Ok(number) };
            let formed = self.queue.form_batch(Nanos(now), claim);
            self.dead.extend(&formed.dead);
            match formed.batch {
                Some(batch) => self.take_off(batch, &before, virtual_before),
                None if formed.more => {}
                None => break,
            }
            observe(self);
        }
        if self.flights.len() < self.scenario.workers {
            let idle_while = self.live().next();
            assert_eq!(idle_while, None, "a worker is idle while a request waits");
        }
    }

    /// The live requests that wait.
    fn live(&self) -> impl Iterator<Item = usize> {
        let numbers = self.waiting.values().flatten().map(|Reverse((_, _, number))| *number);
        numbers.filter(|number| !self.has_left(*number))
    }

    fn take_off(&mut self, batch: Batch<usize>, before: &[Tag], virtual_before: Tag) {
        self.check_leader(&batch, before, virtual_before);
        let mut paid = BTreeMap::new();
        for (tenant, before) in before.iter().enumerate() {
            let moved = self.finish(tenant).minus(*before);
            let weight = Weight::new(self.scenario.weights[tenant]);
            let charged = batch.entries.iter().any(|entry| entry.tenant.0 as usize == tenant && !entry.free);
            assert!(charged || moved == Tag::ZERO, "tenant {tenant} was charged for nothing");
            paid.insert(tenant, weight.device_nanos(moved) as f64);
        }
        self.check_order_within_tenants(&batch);
        self.longest = self.longest.max(batch.predicted.as_nanos() as f64);
        let cost = &self.scenario.plans[batch.plan.0 as usize];
        let noise = self.scenario.noise[self.dispatched.len() % self.scenario.noise.len()];
        let measured = ((cost.base + cost.per_row * u64::from(batch.bucket_rows)) as f64 * noise) as u64;
        let requests: Vec<usize> = batch.entries.iter().map(|entry| entry.item).collect();
        self.dispatched.push(requests.clone());
        self.flights.push(Flight { ends: self.now + measured, measured, ticket: batch.ticket, requests, paid });
    }

    /// The leader has the smallest start tag of all that live, is its tenant's first, and V is its start tag.
    fn check_leader(&self, batch: &Batch<usize>, before: &[Tag], virtual_before: Tag) {
        let leader = self.scenario.requests[batch.entries[0].item].tenant;
        for other in self.live().map(|number| self.scenario.requests[number].tenant) {
            assert!(before[leader] <= before[other], "tenant {leader} led before {other}");
        }
        assert_eq!(self.queue.virtual_time(), virtual_before.max(before[leader]), "V is not the leader's start tag");
        let own = self.live().filter(|number| self.scenario.requests[*number].tenant == leader);
        assert_eq!(
            own.map(|number| self.turn(number)).min(),
            Some(self.turn(batch.entries[0].item)),
            "the tenant's own order"
        );
    }

    /// Each tenant's entries come up in its own order; what has left is skipped.
    fn check_order_within_tenants(&mut self, batch: &Batch<usize>) {
        for entry in &batch.entries {
            assert!(!self.has_left(entry.item), "request {} had left", entry.item);
            let queue = self.waiting.get_mut(&(entry.tenant.0 as usize, batch.plan.0 as usize)).unwrap();
            loop {
                let Reverse((_, _, next)) = queue.pop().expect("it was dispatched twice");
                if next == entry.item {
                    break;
                }
                assert!(self.scenario.requests[next].leaves <= self.now, "request {next} was passed over");
            }
        }
    }

    /// Ends the batches that end at `time`.
    fn land(&mut self, time: u64) {
        let Some(position) = self.flights.iter().position(|flight| flight.ends == time) else { return };
        let flight = self.flights.remove(position);
        let shares = self.queue.complete(flight.ticket, Settlement::Measured(Duration::from_nanos(flight.measured)));
        let sum: Duration = shares.iter().map(|share| share.device).sum();
        assert_eq!(sum.as_nanos() as u64, flight.measured, "the measured time is shared out whole");
        for share in shares {
            let account = &mut self.accounts[share.tenant.0 as usize];
            let bore = share.device.as_nanos() as f64;
            account.served += bore;
            account.forgone += share.forgone.as_nanos() as f64;
            account.worst_correction = account.worst_correction.max(bore - flight.paid[&(share.tenant.0 as usize)]);
        }
        for number in flight.requests {
            let request = &self.scenario.requests[number];
            let account = &mut self.accounts[request.tenant];
            account.worst_latency = account.worst_latency.max(self.now - request.arrives);
        }
    }

    fn check_nothing_is_lost(&self) {
        let mut all: Vec<usize> = self.dispatched.iter().flatten().chain(&self.dead).copied().collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..self.scenario.requests.len()), "lost or twice: {all:?}");
        let counts = self.queue.counts();
        assert_eq!((counts.queued, counts.waiting_tenants, counts.running), (0, 0, 0));
        assert_eq!(counts.backlog, Duration::ZERO);
    }
}
