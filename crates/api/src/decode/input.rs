//! One entry of a request's `inputs`, as its fields come in whatever order, up to the claim that the wall checks. It reads
//! no tensor data; the envelope feeds it and acts on what it has become.

use std::ops::Range;

use insula_core::shape::MAX_RANK;
use insula_core::{CheckedTensor, DType, Error, ModelSignature, Result, TensorClaim};
use smallvec::SmallVec;

use crate::format::INFERENCE_HEADER_CONTENT_LENGTH;
use crate::json::excerpt;
use crate::json::number::Number;

/// What is known of an input so far.
#[derive(Debug, Default)]
pub(super) struct InputDraft {
    /// Its place in the request, for messages while the name is unknown.
    number: usize,
    input: Option<usize>,
    dtype: Option<DType>,
    shape: Option<SmallVec<[i64; MAX_RANK]>>,
    /// The parameter `binary_data_size`.
    pub(super) binary_data_size: Option<usize>,
    /// The text of `data`, from behind its `[`, when it had to be put off.
    pub(super) data: Option<Range<usize>>,
    /// The tensor, when `data` could be read at once.
    pub(super) tensor: Option<CheckedTensor>,
}

/// Where an input's data is, once all its fields are known.
#[derive(Debug)]
pub(super) enum Source {
    /// Read already.
    Read(CheckedTensor),
    /// In the text, not yet read.
    Text(TensorClaim, Range<usize>),
    /// So many bytes of the binary tail.
    Binary(TensorClaim, usize),
}

impl InputDraft {
    /// Nothing known of the input that is number `number` in the request.
    pub(super) fn new(number: usize) -> InputDraft {
        InputDraft { number, ..InputDraft::default() }
    }

    /// How messages call it.
    pub(super) fn label(&self, signature: &ModelSignature) -> String {
        match self.input.and_then(|input| signature.inputs.get(input)) {
            Some(spec) => format!("input `{}`", spec.name),
            None => format!("input number {}", self.number),
        }
    }

    /// Its name is that of the model's input number `input`.
    pub(super) fn set_input(&mut self, input: usize) {
        self.input = Some(input);
    }

    /// Takes the datatype's name.
    pub(super) fn set_datatype(&mut self, name: &[u8], signature: &ModelSignature) -> Result<()> {
        self.dtype = std::str::from_utf8(name).ok().and_then(DType::from_name);
        if self.dtype.is_some() {
            return Ok(());
        }
        let known: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        Err(Error::invalid(format!(
            "{} has the unknown datatype `{}`; known are {}",
            self.label(signature),
            excerpt(name),
            known.join(", ")
        )))
    }

    /// The shape begins.
    pub(super) fn begin_shape(&mut self) {
        self.shape = Some(SmallVec::new());
    }

    /// Takes one dimension of the shape.
    pub(super) fn add_dimension(&mut self, number: &Number, text: &[u8], signature: &ModelSignature) -> Result<()> {
        let label = || self.label(signature);
        let Some(size) = number.signed(text, i64::MIN, i64::MAX) else {
            let found = excerpt(number.text(text));
            return Err(Error::invalid(format!("`shape` of {} holds {found}, dimensions are whole numbers", label())));
        };
        if self.shape.as_ref().is_some_and(|shape| shape.len() >= MAX_RANK) {
            return Err(Error::invalid(format!("`shape` of {} has more than {MAX_RANK} dimensions", label())));
        }
        self.shape.get_or_insert_default().push(size);
        Ok(())
    }

    /// The claim, once name, datatype and shape are known; `None` before.
    pub(super) fn claim(&self, signature: &ModelSignature) -> Result<Option<TensorClaim>> {
        let (Some(input), Some(dtype), Some(shape)) = (self.input, self.dtype, &self.shape) else { return Ok(None) };
        let Some(spec) = signature.inputs.get(input) else { return Ok(None) };
        TensorClaim::new(spec, input, dtype, shape).map(Some)
    }

    /// The data's source, at the end of the entry. `described` says whether the body has a binary tail.
    pub(super) fn source(mut self, signature: &ModelSignature, described: bool) -> Result<Source> {
        let has_data = self.tensor.is_some() || self.data.is_some();
        match (self.tensor.take(), self.data.take(), self.binary_data_size) {
            (Some(tensor), _, None) => return Ok(Source::Read(tensor)),
            (None, Some(range), None) => {
                if let Some(claim) = self.claim(signature)? {
                    return Ok(Source::Text(claim, range));
                }
            }
            (None, None, Some(size)) if described => {
                if let Some(claim) = self.claim(signature)? {
                    return Ok(Source::Binary(claim, size));
                }
            }
            _ => {}
        }
        Err(self.incomplete(signature, has_data))
    }

    /// What is wrong with an entry that has no single source of data or lacks a field.
    #[cold]
    fn incomplete(&self, signature: &ModelSignature, has_data: bool) -> Error {
        let label = self.label(signature);
        let missing =
            [("name", self.input.is_none()), ("datatype", self.dtype.is_none()), ("shape", self.shape.is_none())];
        if let Some((field, _)) = missing.iter().find(|(_, missing)| *missing) {
            return Error::invalid(format!("{label} has no `{field}`"));
        }
        Error::invalid(match (has_data, self.binary_data_size) {
            (true, Some(_)) => {
                format!("{label} has both `data` and the parameter `binary_data_size`: give one of them")
            }
            (_, None) => format!("{label} has neither `data` nor the parameter `binary_data_size`"),
            (false, Some(_)) => format!(
                "{label} has the parameter `binary_data_size`, but the request has no header `{INFERENCE_HEADER_CONTENT_LENGTH}`"
            ),
        })
    }
}
