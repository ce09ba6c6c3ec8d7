//! Who has which weights: by the content of the constant and the way it is packed, without keeping any alive. Packing looks
//! here first, so that what two plans, versions or tenants have in common exists once.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Weak};

use insula_core::Result;
use insula_kernels::conv::ConvWeights;
use insula_kernels::conv_transpose::{ConvTransposeShape, ConvTransposeWeights};
use insula_kernels::gemm::PackedWeights;
use insula_kernels::recurrent::{RecurrentShape, RecurrentWeights};
use insula_model::Constant;
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};

/// A piece of weights that can tell its size.
pub(in crate::cpu) trait PieceBytes {
    /// Its bytes.
    fn piece_bytes(&self) -> usize;
}

impl PieceBytes for [PackedWeights] {
    fn piece_bytes(&self) -> usize {
        self.iter().map(PackedWeights::bytes).sum()
    }
}

impl PieceBytes for ConvWeights {
    fn piece_bytes(&self) -> usize {
        self.bytes()
    }
}

impl PieceBytes for ConvTransposeWeights {
    fn piece_bytes(&self) -> usize {
        self.bytes()
    }
}

impl PieceBytes for RecurrentWeights {
    fn piece_bytes(&self) -> usize {
        self.bytes()
    }
}

impl PieceBytes for [f32] {
    fn piece_bytes(&self) -> usize {
        size_of_val(self)
    }
}

impl PieceBytes for Constant {
    fn piece_bytes(&self) -> usize {
        self.bytes().len()
    }
}

/// What a constant holds, and the numbers that say how it is packed.
type PieceKey = ([u8; 32], SmallVec<[usize; 6]>);

/// Pieces of one kind that are in use somewhere.
struct Pieces<T: ?Sized>(Mutex<HashMap<PieceKey, Weak<T>>>);

impl<T: PieceBytes + ?Sized> Pieces<T> {
    fn get_or_pack(&self, key: PieceKey, pack: impl FnOnce() -> Result<Arc<T>>) -> Result<Arc<T>> {
        if let Some(piece) = self.0.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(piece);
        }
        // Packed outside the lock: a large model must not hold up a small one. Who comes second gives its copy up.
        let packed = pack()?;
        let mut entries = self.0.lock();
        if let Some(piece) = entries.get(&key).and_then(Weak::upgrade) {
            return Ok(piece);
        }
        if entries.len() == entries.capacity() {
            entries.retain(|_, piece| piece.strong_count() > 0);
        }
        entries.insert(key, Arc::downgrade(&packed));
        Ok(packed)
    }

    fn bytes(&self) -> usize {
        let live: Vec<Arc<T>> = self.0.lock().values().filter_map(Weak::upgrade).collect();
        live.iter().map(|piece| piece.piece_bytes()).sum()
    }
}

impl<T: ?Sized> Default for Pieces<T> {
    fn default() -> Self {
        Pieces(Mutex::default())
    }
}

/// All pieces that are in use somewhere; or, for a plan that lives for a moment, none.
#[derive(Default)]
pub(in crate::cpu) struct WeightCache {
    matrices: Pieces<[PackedWeights]>,
    filters: Pieces<ConvWeights>,
    transposed_filters: Pieces<ConvTransposeWeights>,
    recurrent: Pieces<RecurrentWeights>,
    biases: Pieces<[f32]>,
    plain: Pieces<Constant>,
    shares_nothing: bool,
}

impl WeightCache {
    /// One that packs everything anew and looks at no content, for constants that are gone in a moment.
    pub(in crate::cpu) fn sharing_nothing() -> WeightCache {
        WeightCache { shares_nothing: true, ..WeightCache::default() }
    }

    /// The matrices of `sizes` in `constant`.
    pub(in crate::cpu) fn matrices(
        &self,
        constant: &Constant,
        sizes: [usize; 2],
        pack: impl FnOnce() -> Result<Arc<[PackedWeights]>>,
    ) -> Result<Arc<[PackedWeights]>> {
        self.piece(&self.matrices, constant, sizes.as_slice().into(), pack)
    }

    /// The filters in `constant` in `groups` groups.
    pub(in crate::cpu) fn filters(
        &self,
        constant: &Constant,
        groups: usize,
        pack: impl FnOnce() -> Result<Arc<ConvWeights>>,
    ) -> Result<Arc<ConvWeights>> {
        let packing = std::iter::once(groups).chain(constant.shape().dims().iter().copied()).collect();
        self.piece(&self.filters, constant, packing, pack)
    }

    /// The filters in `constant` for a transposed convolution of `shape`.
    pub(in crate::cpu) fn transposed_filters(
        &self,
        constant: &Constant,
        shape: &ConvTransposeShape,
        pack: impl FnOnce() -> Result<Arc<ConvTransposeWeights>>,
    ) -> Result<Arc<ConvTransposeWeights>> {
        let window = &shape.window;
        let triples = [window.input, window.output, window.kernel, window.strides, window.dilations, window.pads];
        let counts = [shape.channels, shape.filters, shape.groups];
        let packing = triples.into_iter().chain([counts]).flatten().collect();
        self.piece(&self.transposed_filters, constant, packing, pack)
    }

    /// The weights of the input and of the state of a recurrent layer of `shape`.
    pub(in crate::cpu) fn recurrent(
        &self,
        [input, state]: [&Constant; 2],
        shape: &RecurrentShape,
        pack: impl FnOnce() -> Result<Arc<RecurrentWeights>>,
    ) -> Result<Arc<RecurrentWeights>> {
        // how weights are cut depends on the kind of cell alone
        let sizes = [shape.directions, shape.cell.gates(), shape.input, shape.hidden];
        let state = state.content_hash().into_iter().map(usize::from);
        self.piece(&self.recurrent, input, sizes.into_iter().chain(state).collect(), pack)
    }

    /// The bias in `constant`.
    pub(in crate::cpu) fn bias(
        &self,
        constant: &Constant,
        pack: impl FnOnce() -> Result<Arc<[f32]>>,
    ) -> Result<Arc<[f32]>> {
        self.piece(&self.biases, constant, smallvec![], pack)
    }

    /// `constant` as it is.
    pub(in crate::cpu) fn plain(
        &self,
        constant: &Constant,
        pack: impl FnOnce() -> Result<Arc<Constant>>,
    ) -> Result<Arc<Constant>> {
        self.piece(&self.plain, constant, smallvec![], pack)
    }

    /// Bytes of all weights in use.
    pub(in crate::cpu) fn bytes(&self) -> usize {
        let layers = self.filters.bytes() + self.transposed_filters.bytes() + self.recurrent.bytes();
        self.matrices.bytes() + layers + self.biases.bytes() + self.plain.bytes()
    }

    fn piece<T: PieceBytes + ?Sized>(
        &self,
        pieces: &Pieces<T>,
        constant: &Constant,
        packing: SmallVec<[usize; 6]>,
        pack: impl FnOnce() -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        match self.shares_nothing {
            true => pack(),
            false => pieces.get_or_pack((constant.content_hash(), packing), pack),
        }
    }
}

impl Debug for WeightCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeightCache({} bytes)", self.bytes())
    }
}
