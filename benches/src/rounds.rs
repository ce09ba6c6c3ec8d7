//! Medians with their smallest and largest values over interleaved rounds: the only figures worth quoting on a shared
//! machine are ratios within one run.

use std::fmt;

/// Values of one figure over the rounds.
#[derive(Debug, Clone, Default)]
pub struct Rounds(Vec<f64>);

impl Rounds {
    /// Adds a round's value.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The middle value.
    pub fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The smallest value.
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision().unwrap_or(0);
        write!(f, "{:.precision$} ({:.precision$}-{:.precision$})", self.median(), self.least(), self.most())
    }
}
