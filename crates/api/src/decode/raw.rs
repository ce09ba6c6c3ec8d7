//! Raw requests, which have no description: the body is the bytes of the model's single input, whose shape follows from
//! their number, and all outputs are answered as binary data. Chosen by `Inference-Header-Content-Length: 0`.

use std::sync::Arc;

use insula_core::{
    CheckedRequest, DType, Dimension, Error, ModelSignature, Result, TensorClaim, TensorSink, TensorSlot, TensorSpec,
};
use smallvec::SmallVec;

use crate::encode::Reply;

/// A raw request being read.
pub(super) struct RawRequest {
    signature: Arc<ModelSignature>,
    /// For BYTES: the element being copied behind its length, and how far.
    element: Option<(TensorSlot, usize)>,
}

impl RawRequest {
    /// A request to the model with `signature`.
    pub(super) fn new(signature: Arc<ModelSignature>) -> RawRequest {
        RawRequest { signature, element: None }
    }

    /// Reads about `budget` bytes on.
    pub(super) fn step(&mut self, sink: &mut dyn TensorSink, budget: usize) -> Result<Option<CheckedRequest>> {
        let [spec] = &*self.signature.inputs else {
            let count = self.signature.inputs.len();
            return Err(Error::invalid(format!(
                "a raw request (`Inference-Header-Content-Length: 0`) needs a model with one input, this one has {count}"
            )));
        };
        let length = sink.body().len();
        let claim = TensorClaim::new(spec, 0, spec.dtype, &raw_shape(&self.signature, spec, length)?)?;
        let slot = match spec.dtype {
            DType::Bytes => match copy_element(&mut self.element, sink, budget)? {
                Some(slot) => slot,
                None => return Ok(None),
            },
            _ => sink.adopt(0..length)?,
        };
        let tensor = claim.verify(sink.slot(slot), slot)?;
        let reply = Reply::new(None, SmallVec::from_elem(true, self.signature.outputs.len()));
        CheckedRequest::assemble(&self.signature, vec![tensor], Vec::new(), Box::new(reply)).map(Some)
    }
}

/// Copies the body into memory as one BYTES element. `None`: not yet done.
fn copy_element(
    element: &mut Option<(TensorSlot, usize)>,
    sink: &mut dyn TensorSink,
    budget: usize,
) -> Result<Option<TensorSlot>> {
    const PREFIX: usize = size_of::<u32>();
    let length = sink.body().len();
    let (slot, copied) = match *element {
        Some(progress) => progress,
        None => {
            let Ok(prefix) = u32::try_from(length) else {
                return Err(Error::invalid(format!(
                    "the body has {length} bytes, a BYTES element has at most {}",
                    u32::MAX
                )));
            };
            let slot = sink.reserve(PREFIX + length)?;
            if let Some(place) = sink.body_and_slot(slot).1.first_chunk_mut() {
                *place = prefix.to_le_bytes();
            }
            (slot, 0)
        }
    };
    let end = length.min(copied.saturating_add(budget));
    let (body, out) = sink.body_and_slot(slot);
    if let (Some(from), Some(to)) = (body.get(copied..end), out.get_mut(PREFIX + copied..PREFIX + end)) {
        to.copy_from_slice(from);
    }
    *element = Some((slot, end));
    Ok((end == length).then_some(slot))
}

/// The shape that `length` bytes have. Rows are counted when the batch dimension is the only variable one; a model with
/// another variable dimension gets one row, as the protocol has it.
fn raw_shape(signature: &ModelSignature, spec: &TensorSpec, length: usize) -> Result<SmallVec<[i64; 8]>> {
    let mut shape: SmallVec<[i64; 8]> = spec.protocol_shape().into();
    let variable = |from: usize| {
        let dims = spec.dims.iter().enumerate().skip(from);
        dims.filter(|(_, dim)| matches!(dim, Dimension::Symbolic(_))).map(|(index, _)| index)
    };
    let inner = usize::from(signature.batched);
    let open = match (variable(inner).count(), spec.dtype) {
        (_, DType::Bytes) => None,
        (0, _) => variable(0).next(),
        (1, _) => variable(inner).next(),
        (count, _) => {
            return Err(Error::invalid(format!(
                "a raw request needs at most one variable dimension, input `{}` has {count}: describe its shape",
                spec.name
            )));
        }
    };
    for (index, size) in shape.iter_mut().enumerate() {
        if *size < 0 && Some(index) != open {
            *size = 1;
        }
    }
    let (Some(open), Some(element)) = (open, spec.dtype.size()) else { return Ok(shape) };
    let known = shape
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != open)
        .map(|(_, size)| usize::try_from(*size).unwrap_or(0));
    let unit = known.into_iter().try_fold(element, usize::checked_mul).filter(|unit| *unit > 0);
    match unit {
        Some(unit) if length > 0 && length.is_multiple_of(unit) => {
            shape[open] = i64::try_from(length / unit).unwrap_or(i64::MAX)
        }
        _ => {
            return Err(Error::invalid(format!(
                "the body has {length} bytes, which is no whole number of input `{}` of shape {:?} and type {}",
                spec.name,
                spec.protocol_shape(),
                spec.dtype
            )));
        }
    }
    Ok(shape)
}
