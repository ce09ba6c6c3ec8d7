//! The fairness bound, followed through a run: for two tenants that are backlogged all the time from t1 to t2, what they were
//! served by weight differs by at most (D + 3)(C/w_i + C/w_j) plus corrections.
//!
//! F - V of a backlogged tenant lies between 0 and 3C/w (2C/w at the last ride, C/w paid then) plus what batches in flight
//! took longer than paid; what was paid for batches in flight is at most DC; a refund that was not given stays in F. The
//! corrections are exactly the last two: D times the worst batch, and the refunds forgone.

use super::simulator::Simulator;

/// What is known of a pair since both became backlogged.
#[derive(Clone)]
struct Pair {
    low: f64,
    high: f64,
    forgone: [f64; 2],
}

pub struct FairnessBound {
    pairs: Vec<Vec<Option<Pair>>>,
    /// How often a pair was compared: a run that never compares proves nothing.
    pub compared: usize,
}

impl FairnessBound {
    pub fn new(tenants: usize) -> Self {
        FairnessBound { pairs: vec![vec![None; tenants]; tenants], compared: 0 }
    }

    pub fn observe(&mut self, state: &Simulator<'_>) {
        for i in 0..self.pairs.len() {
            for j in 0..i {
                if state.is_backlogged(i) && state.is_backlogged(j) {
                    self.compare(state, i, j);
                } else {
                    self.pairs[i][j] = None;
                }
            }
        }
    }

    fn compare(&mut self, state: &Simulator<'_>, i: usize, j: usize) {
        let (weights, accounts) = ([state.weight(i), state.weight(j)], [&state.accounts[i], &state.accounts[j]]);
        let difference = accounts[0].served / weights[0] - accounts[1].served / weights[1];
        let forgone = accounts.map(|account| account.forgone);
        let pair = self.pairs[i][j].get_or_insert(Pair { low: difference, high: difference, forgone });
        (pair.low, pair.high) = (pair.low.min(difference), pair.high.max(difference));
        let flights = state.scenario.workers as f64;
        let bound: f64 = (0..2)
            .map(|side| {
                let corrections = flights * accounts[side].worst_correction + forgone[side] - pair.forgone[side];
                // A nanosecond of rounding for each tag that was read.
                ((flights + 3.0) * state.longest + corrections + 10.0) / weights[side]
            })
            .sum();
        let gap = pair.high - pair.low;
        assert!(gap <= bound, "tenants {i} and {j} are {gap} ns/w apart, the bound is {bound}");
        self.compared += 1;
    }
}
