//! The attributes that convolutions and poolings share, and how `auto_pad` and `ceil_mode` become explicit padding.

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{Pads, Window};
use crate::operators::NodeImport;
use crate::shape_inference::{MAX_WINDOW_ATTRIBUTE, rows_meet, shown, window_output};

/// The spatial axes of an image in ONNX's order `[N, C, spatial..]`, seen as those of a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spatial {
    /// How many there are: 1 to 3.
    pub axes: usize,
    /// Their sizes, 1 in front for those that are not there.
    pub size: [usize; 3],
}

impl Spatial {
    pub(super) fn of(node: &NodeImport<'_>, input: ValueId) -> LoadResult<Spatial> {
        let dims = node.dims(input);
        let mut size = [1; 3];
        let axes = dims.len().wrapping_sub(2);
        if !(1..=3).contains(&axes) {
            return Err(LoadError::unsupported(format!(
                "its input has shape {}; sequences, images and volumes, with 3 to 5 dimensions, are supported",
                shown(&dims)
            )));
        }
        for (to, dim) in size[3 - axes..].iter_mut().zip(&dims[2..]) {
            let Dim::Fixed(fixed) = dim else { return Err(rows_meet("it is a spatial axis")) };
            *to = *fixed;
        }
        Ok(Spatial { axes, size })
    }

    /// A volume's triple from an attribute's values for the axes that are there.
    fn triple(self, name: &str, values: &[i64], least: usize, missing: usize) -> LoadResult<[usize; 3]> {
        if values.len() != self.axes {
            return Err(LoadError::malformed(format!(
                "attribute `{name}` has {} values, expected one for each of the {} spatial axes",
                values.len(),
                self.axes
            )));
        }
        let mut triple = [missing; 3];
        for (to, value) in triple[3 - self.axes..].iter_mut().zip(values) {
            *to = checked(name, *value, least)?;
        }
        Ok(triple)
    }

    /// The kernel of a weight `[M, C, kernel..]`.
    pub(super) fn weight_kernel(self, node: &NodeImport<'_>, weight: ValueId) -> LoadResult<[usize; 3]> {
        let dims = node.dims(weight);
        if dims.len() != self.axes + 2 {
            return Err(LoadError::malformed(format!(
                "the weight has shape {}, expected {} dimensions",
                shown(&dims),
                self.axes + 2
            )));
        }
        let mut kernel = [1; 3];
        for (to, dim) in kernel[3 - self.axes..].iter_mut().zip(&dims[2..]) {
            let Dim::Fixed(size) = dim else { return Err(rows_meet("it is a kernel's size")) };
            if *size > MAX_WINDOW_ATTRIBUTE {
                return Err(LoadError::limit(format!("a kernel of {size} pixels is too large")));
            }
            *to = *size;
        }
        Ok(kernel)
    }
}

/// An integer attribute for each spatial axis, at least `least`; `missing` where there is no such attribute or axis.
pub(super) fn triple(
    node: &NodeImport<'_>,
    spatial: Spatial,
    name: &'static str,
    least: usize,
    missing: usize,
) -> LoadResult<Option<[usize; 3]>> {
    node.attributes.ints(name)?.map(|values| spatial.triple(name, values, least, missing)).transpose()
}

/// How a window is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    /// By this much.
    Explicit(Pads),
    /// So that there is an output pixel for each `stride` input pixels; an odd pixel comes in front (`lower`) or behind.
    Same {
        /// Whether the odd pixel comes in front.
        lower: bool,
    },
}

/// Reads `pads` and `auto_pad`.
pub(super) fn padding(node: &NodeImport<'_>, spatial: Spatial) -> LoadResult<Padding> {
    let pads = explicit_pads(node, spatial)?;
    match node.attributes.text("auto_pad")?.unwrap_or("NOTSET") {
        "NOTSET" | "" => Ok(Padding::Explicit(pads)),
        _ if pads != Pads::default() => Err(LoadError::malformed("it has both `pads` and `auto_pad`")),
        "VALID" => Ok(Padding::Explicit(pads)),
        "SAME_UPPER" => Ok(Padding::Same { lower: false }),
        "SAME_LOWER" => Ok(Padding::Same { lower: true }),
        _ => Err(LoadError::malformed("attribute `auto_pad` must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")),
    }
}

/// Cuts `total` into padding in front and behind.
pub(super) fn halves(total: usize, lower: bool) -> (usize, usize) {
    let (small, large) = (total / 2, total - total / 2);
    if lower { (large, small) } else { (small, large) }
}

/// Reads `kernel_shape` (or takes `weight_kernel`, which it must equal), `strides`, `dilations`, `pads` and `auto_pad`.
/// `dilations` only if the operator has them in this opset.
pub(super) fn window(
    node: &NodeImport<'_>,
    spatial: Spatial,
    weight_kernel: Option<[usize; 3]>,
    has_dilations: bool,
) -> LoadResult<Window> {
    let kernel = match (triple(node, spatial, "kernel_shape", 1, 1)?, weight_kernel) {
        (Some(kernel), _) => kernel,
        (None, Some(kernel)) => kernel,
        (None, None) => return Err(LoadError::malformed("attribute `kernel_shape` is missing")),
    };
    let strides = triple(node, spatial, "strides", 1, 1)?.unwrap_or([1; 3]);
    let dilations = match has_dilations {
        true => triple(node, spatial, "dilations", 1, 1)?.unwrap_or([1; 3]),
        false => [1; 3],
    };
    let pads = match padding(node, spatial)? {
        Padding::Explicit(pads) => pads,
        Padding::Same { lower } => {
            let mut pads = Pads::default();
            for axis in 0..3 {
                let outputs = spatial.size[axis].div_ceil(strides[axis]);
                let needed = outputs.saturating_sub(1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
                let total = needed.saturating_sub(spatial.size[axis]);
                (pads.before[axis], pads.after[axis]) = halves(total, lower);
            }
            pads
        }
    };
    Ok(Window { kernel, strides, dilations, pads })
}

/// Padding behind the image so that the last window of `ceil_mode` fits, and how much that is. A window that would begin
/// beyond the image and its padding is left out, as ONNX has it.
pub(super) fn extend_for_ceil_mode(window: &mut Window, size: [usize; 3]) -> LoadResult<[usize; 3]> {
    let Window { kernel, strides, dilations, pads } = window;
    let mut overhang = [0; 3];
    for axis in 0..3 {
        let (before, after) = (pads.before[axis], &mut pads.after[axis]);
        let whole = window_output(size[axis], before + *after, kernel[axis], strides[axis], dilations[axis])?;
        let reach = (kernel[axis] - 1) * dilations[axis] + 1;
        let end = size[axis] + before + *after;
        let next_begins = whole * strides[axis];
        let more_to_see = (whole - 1) * strides[axis] + reach < end;
        if more_to_see && next_begins < size[axis] + before {
            overhang[axis] = next_begins + reach - end;
            *after += overhang[axis];
        }
    }
    Ok(overhang)
}

fn explicit_pads(node: &NodeImport<'_>, spatial: Spatial) -> LoadResult<Pads> {
    let Some(pads) = node.attributes.ints("pads")? else { return Ok(Pads::default()) };
    let (before, after) = pads.split_at(pads.len() / 2);
    Ok(Pads { before: spatial.triple("pads", before, 0, 0)?, after: spatial.triple("pads", after, 0, 0)? })
}

fn checked(name: &str, value: i64, least: usize) -> LoadResult<usize> {
    usize::try_from(value).ok().filter(|size| (least..=MAX_WINDOW_ATTRIBUTE).contains(size)).ok_or_else(|| {
        LoadError::malformed(format!("attribute `{name}` holds {value}, expected {least} to {MAX_WINDOW_ATTRIBUTE}"))
    })
}
