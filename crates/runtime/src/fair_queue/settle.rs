//! Settles a batch that has ended: shares its measured time among those who were charged and corrects their tags. Called by
//! the shard under its lock.

use std::time::Duration;

use smallvec::SmallVec;

use super::batch::{BatchTicket, Charge, DeviceShare, Settlement};
use super::entry::TenantSlot;
use super::{FairQueue, nanos, tenant_mut};

impl<E> FairQueue<E> {
    /// Ends a batch. Each tenant's finish tag moves by what it bore less what it had paid: up always, so a debt outlives
    /// idling; down never below V, so nobody gains a claim on the past. Returns what each tenant bore.
    pub fn complete(&mut self, ticket: BatchTicket, settlement: Settlement<'_>) -> SmallVec<[DeviceShare; 8]> {
        let BatchTicket { epoch, plan, rows, predicted, charges } = ticket;
        if epoch == self.epoch {
            self.running = self.running.saturating_sub(1);
            self.running_nanos = self.running_nanos.saturating_sub(predicted);
        }
        if let Settlement::Measured(measured) = settlement {
            self.learn(plan, rows, measured);
        }
        let shares = share_out(charges, settlement).into_iter().map(|bill| self.settle(bill)).collect();
        self.settle_if_idle();
        shares
    }

    fn settle(&mut self, bill: Bill) -> DeviceShare {
        let Bill { charge, bears } = bill;
        let mut forgone = 0;
        let virtual_time = self.virtual_time;
        let tenant =
            tenant_mut(&mut self.tenants, charge.tenant).filter(|tenant| tenant.incarnation == charge.incarnation);
        if let Some(tenant) = tenant {
            tenant.device_nanos = tenant.device_nanos.saturating_add(bears);
            let before = tenant.finish;
            if bears >= charge.paid {
                let more = tenant.weight.distance(bears - charge.paid);
                (tenant.finish, tenant.share) = (before.plus(more), tenant.share.plus(more));
            } else {
                let less = tenant.weight.distance(charge.paid - bears);
                tenant.share = tenant.share.minus(less);
                tenant.finish = before.minus(less).max(virtual_time.min(before));
                let given = tenant.weight.device_nanos(before.minus(tenant.finish));
                forgone = (charge.paid - bears).saturating_sub(given);
            }
            if bears != charge.paid {
                self.restand(charge.tenant);
            }
        }
        let (device, forgone) = (Duration::from_nanos(bears), Duration::from_nanos(forgone));
        DeviceShare { tenant: charge.tenant, device, forgone }
    }
}

/// What one tenant paid for a batch, all its entries together, and what it has to bear.
struct Bill {
    charge: Charge,
    bears: u64,
}

fn share_out(mut charges: SmallVec<[Charge; 2]>, settlement: Settlement<'_>) -> SmallVec<[Bill; 4]> {
    charges.sort_unstable_by_key(|charge| (charge.tenant, charge.incarnation));
    charges.dedup_by(|next, kept| {
        let same = (next.tenant, next.incarnation) == (kept.tenant, kept.incarnation);
        if same {
            kept.rows += next.rows;
            kept.paid = kept.paid.saturating_add(next.paid);
        }
        same
    });
    match settlement {
        Settlement::Measured(measured) => by_rows(&charges, nanos(measured)),
        Settlement::PerTenant(named) => {
            let bears = |tenant: TenantSlot| {
                let parts = named.iter().filter(|(name, _)| *name == tenant);
                parts.fold(0u64, |sum, (_, part)| sum.saturating_add(nanos(*part)))
            };
            charges.iter().map(|charge| Bill { charge: *charge, bears: bears(charge.tenant) }).collect()
        }
    }
}

/// Shares `measured` by rows; the parts add up to exactly the whole.
fn by_rows(charges: &[Charge], measured: u64) -> SmallVec<[Bill; 4]> {
    let all: u64 = charges.iter().map(|charge| u64::from(charge.rows)).sum();
    let (mut rows, mut given) = (0u64, 0u64);
    let share = |charge: &Charge| {
        rows += u64::from(charge.rows);
        // At most `measured`, since `rows` is at most `all`.
        let until = (u128::from(measured) * u128::from(rows) / u128::from(all.max(1))) as u64;
        let bears = until - given;
        given = until;
        Bill { charge: *charge, bears }
    };
    charges.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn charge(tenant: u32, rows: u32) -> Charge {
        Charge { tenant: TenantSlot(tenant), incarnation: 1, rows, paid: 0 }
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_measured_time(rows in proptest::collection::vec((0u32..4, 1u32..40), 1..40), measured in any::<u64>()) {
            let charges = rows.iter().map(|(tenant, rows)| charge(*tenant, *rows)).collect();
            let bills = share_out(charges, Settlement::Measured(Duration::from_nanos(measured)));
            prop_assert_eq!(bills.iter().map(|bill| u128::from(bill.bears)).sum::<u128>(), u128::from(measured));
            prop_assert!(bills.windows(2).all(|pair| pair[0].charge.tenant < pair[1].charge.tenant));
        }
    }

    #[test]
    fn who_is_not_named_bears_nothing() {
        let named = [(TenantSlot(2), Duration::from_nanos(7)), (TenantSlot(2), Duration::from_nanos(5))];
        let bills = share_out([charge(1, 1), charge(2, 1)].into_iter().collect(), Settlement::PerTenant(&named));
        assert_eq!(bills.iter().map(|bill| bill.bears).collect::<Vec<_>>(), [0, 12]);
    }
}
