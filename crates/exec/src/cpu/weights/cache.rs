//! Who has which weights: by content, without keeping any alive. The device looks here before it packs.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use insula_core::Result;
use parking_lot::Mutex;

use super::CpuWeights;
use crate::device::Weights as _;

/// Weights that are in use somewhere, by the hash of what they were packed from.
#[derive(Debug, Default)]
pub(in crate::cpu) struct WeightCache {
    entries: Mutex<HashMap<[u8; 32], Weak<CpuWeights>>>,
}

impl WeightCache {
    /// The weights with content `hash`, packed by `pack` if nobody has them.
    pub(in crate::cpu) fn get_or_pack(
        &self,
        hash: [u8; 32],
        pack: impl FnOnce() -> Result<CpuWeights>,
    ) -> Result<Arc<CpuWeights>> {
        if let Some(weights) = self.find(&hash) {
            return Ok(weights);
        }
        // Packed outside the lock: a large model must not hold up a small one. Who comes second gives its copy up.
        let packed = Arc::new(pack()?);
        let mut entries = self.entries.lock();
        if let Some(weights) = entries.get(&hash).and_then(Weak::upgrade) {
            return Ok(weights);
        }
        entries.retain(|_, weights| weights.strong_count() > 0);
        entries.insert(hash, Arc::downgrade(&packed));
        Ok(packed)
    }

    /// Bytes of all weights in use.
    pub(in crate::cpu) fn bytes(&self) -> usize {
        let live: Vec<_> = self.entries.lock().values().filter_map(Weak::upgrade).collect();
        live.iter().map(|weights| weights.bytes()).sum()
    }

    fn find(&self, hash: &[u8; 32]) -> Option<Arc<CpuWeights>> {
        self.entries.lock().get(hash).and_then(Weak::upgrade)
    }
}
