//! The border between a batch's slices and a plan's arena: rows of several requests are brought together by memcpy, and
//! outputs go to each request's own slices. A wrong length here would mix requests, so every length is checked.

use std::ops::Range;

use insula_model::Constant;
use smallvec::SmallVec;

use crate::batch::{BatchIo, EntryIo};
use crate::error::ExecError;

/// An input that steps read.
#[derive(Debug, Clone)]
pub(super) struct InputPlace {
    /// Its position in the model.
    pub index: usize,
    /// Bytes of one row.
    pub row_bytes: usize,
    /// Where all rows of the bucket lie when they are brought together.
    pub range: Range<usize>,
}

/// Where an input of a run is.
#[derive(Debug, Clone)]
pub(super) enum InputBytes<'a> {
    /// In the arena.
    Gathered(Range<usize>),
    /// In the one request's own memory.
    InPlace(&'a [u8]),
}

/// Every element type is aligned to this.
const ALIGNMENT: usize = 8;

impl InputPlace {
    /// Brings the rows of all entries together, or leaves them where they are if one request fills the bucket.
    pub(super) fn gather<'a>(
        &self,
        arena: &mut [u8],
        batch: &BatchIo<'a>,
        bucket: usize,
    ) -> Result<InputBytes<'a>, ExecError> {
        if let [entry] = &batch.entries[..]
            && entry.rows == bucket
        {
            let bytes = self.entry_bytes(entry)?;
            if bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
                return Ok(InputBytes::InPlace(bytes));
            }
        }
        let mut rest = &mut arena[self.range.clone()];
        for entry in &batch.entries {
            let bytes = self.entry_bytes(entry)?;
            let (rows, behind) = rest
                .split_at_mut_checked(bytes.len())
                .ok_or_else(|| ExecError::misfit(format!("more rows than the bucket's {bucket}")))?;
            rows.copy_from_slice(bytes);
            rest = behind;
        }
        rest.fill(0);
        Ok(InputBytes::Gathered(self.range.clone()))
    }

    fn entry_bytes<'a>(&self, entry: &EntryIo<'a>) -> Result<&'a [u8], ExecError> {
        let bytes = entry_input(entry, self.index)?;
        if entry.rows.checked_mul(self.row_bytes) == Some(bytes.len()) {
            return Ok(bytes);
        }
        Err(ExecError::misfit(format!(
            "input {} has {} bytes for {} rows of {} bytes",
            self.index,
            bytes.len(),
            entry.rows,
            self.row_bytes
        )))
    }
}

/// Where an output of the model comes from.
#[derive(Debug, Clone)]
pub(super) enum OutputPlace {
    /// Rows in the arena.
    Arena {
        /// All rows of the bucket.
        range: Range<usize>,
        /// Bytes of one row.
        row_bytes: usize,
    },
    /// The request's own input of this position.
    Input(usize),
    /// A constant, the same for each request.
    Constant(Constant),
}

/// Copies all wanted outputs to the entries' own slices.
pub(super) fn scatter(places: &[OutputPlace], arena: &[u8], batch: &mut BatchIo<'_>) -> Result<(), ExecError> {
    let mut first_row = 0;
    for entry in &mut batch.entries {
        let mut outputs = std::mem::take(&mut entry.outputs);
        for (index, place) in places.iter().enumerate() {
            let Some(Some(out)) = outputs.get_mut(index) else { continue };
            let bytes = place.bytes(arena, entry, first_row)?;
            if out.len() != bytes.len() {
                return Err(ExecError::misfit(format!(
                    "output {index} has {} bytes, its room {}",
                    bytes.len(),
                    out.len()
                )));
            }
            out.copy_from_slice(bytes);
        }
        entry.outputs = outputs;
        first_row += entry.rows;
    }
    Ok(())
}

impl OutputPlace {
    /// What `entry`, whose rows begin at `first_row` of the batch, gets.
    fn bytes<'b>(&'b self, arena: &'b [u8], entry: &'b EntryIo<'_>, first_row: usize) -> Result<&'b [u8], ExecError> {
        match self {
            OutputPlace::Arena { range, row_bytes } => {
                let rows = first_row * row_bytes..(first_row + entry.rows) * row_bytes;
                let found = arena.get(range.clone()).and_then(|output| output.get(rows));
                found.ok_or_else(|| ExecError::misfit("an output has fewer rows than the batch"))
            }
            OutputPlace::Input(index) => entry_input(entry, *index),
            OutputPlace::Constant(constant) => Ok(constant.bytes()),
        }
    }
}

fn entry_input<'a>(entry: &EntryIo<'a>, index: usize) -> Result<&'a [u8], ExecError> {
    entry.inputs.get(index).copied().ok_or_else(|| ExecError::misfit(format!("input {index} is missing")))
}

/// Checks what every plan expects of a batch: at least one row for each entry, and no more rows than `bucket` in all.
pub(super) fn check_rows(batch: &BatchIo<'_>, bucket: usize) -> Result<(), ExecError> {
    let rows: SmallVec<[usize; 8]> = batch.entries.iter().map(|entry| entry.rows).collect();
    if rows.is_empty() || rows.contains(&0) || batch.rows() > bucket {
        return Err(ExecError::misfit(format!("entries of {rows:?} rows, a plan for {bucket}")));
    }
    Ok(())
}
