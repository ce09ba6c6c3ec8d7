//! How many rows the batches of a model had. A batch may serve several tenants, so these series belong to the loaded model
//! and not to a tenant; they live as long as a handle does.

use std::sync::Arc;

use insula_core::ModelName;

use super::histogram::RowHistogram;

/// The batch series of one loaded model. Clones share them; when the last one is dropped the series are gone.
#[derive(Debug, Clone)]
pub struct BatchMetrics(pub(super) Arc<BatchSeries>);

#[derive(Debug)]
pub(super) struct BatchSeries {
    pub(super) model: ModelName,
    pub(super) rows: RowHistogram,
}

impl BatchMetrics {
    pub(super) fn new(model: ModelName) -> BatchMetrics {
        BatchMetrics(Arc::new(BatchSeries { model, rows: RowHistogram::of_rows() }))
    }

    /// Notes a batch of `rows` rows that was run.
    pub fn observe_rows(&self, rows: usize) {
        self.0.rows.observe(rows as u64);
    }
}
