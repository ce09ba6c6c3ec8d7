//! The attributes that convolutions and poolings share, and how `auto_pad` and `ceil_mode` become explicit padding.

use crate::error::{LoadError, LoadResult};
use crate::op::{Pads, Window};
use crate::operators::NodeImport;
use crate::shape_inference::{MAX_WINDOW_ATTRIBUTE, window_output};

/// Reads `kernel_shape` (or takes `weight_kernel`, which it must equal), `strides`, `dilations`, `pads` and `auto_pad` for an
/// image of `size` = `[height, width]`. `dilations` only if the operator has them in this opset.
pub(super) fn window(
    node: &NodeImport<'_>,
    size: [usize; 2],
    weight_kernel: Option<[usize; 2]>,
    has_dilations: bool,
) -> LoadResult<Window> {
    let kernel = match (pair(node, "kernel_shape", 1)?, weight_kernel) {
        (Some(kernel), _) => kernel,
        (None, Some(kernel)) => kernel,
        (None, None) => return Err(LoadError::malformed("attribute `kernel_shape` is missing")),
    };
    let strides = pair(node, "strides", 1)?.unwrap_or([1, 1]);
    let dilations = match has_dilations {
        true => pair(node, "dilations", 1)?.unwrap_or([1, 1]),
        false => [1, 1],
    };
    let pads = explicit_pads(node)?;
    let same = |lower: bool| -> [(usize, usize); 2] {
        [0, 1].map(|axis| {
            let outputs = size[axis].div_ceil(strides[axis]);
            let needed = (outputs - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
            let total = needed.saturating_sub(size[axis]);
            let (small, large) = (total / 2, total - total / 2);
            if lower { (large, small) } else { (small, large) }
        })
    };
    let [(top, bottom), (left, right)] = match node.attributes.text("auto_pad")?.unwrap_or("NOTSET") {
        "NOTSET" | "" => [(pads.top, pads.bottom), (pads.left, pads.right)],
        _ if pads != Pads::default() => return Err(LoadError::malformed("it has both `pads` and `auto_pad`")),
        "VALID" => [(0, 0), (0, 0)],
        "SAME_UPPER" => same(false),
        "SAME_LOWER" => same(true),
        _ => return Err(LoadError::malformed("attribute `auto_pad` must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")),
    };
    Ok(Window { kernel, strides, dilations, pads: Pads { top, left, bottom, right } })
}

/// Padding below and to the right so that the last window of `ceil_mode` fits. A window that would begin beyond the image and
/// its padding is left out, as ONNX has it.
pub(super) fn extend_for_ceil_mode(window: &mut Window, size: [usize; 2]) -> LoadResult<()> {
    let Window { kernel, strides, dilations, pads } = window;
    for (axis, before, after) in [(0, pads.top, &mut pads.bottom), (1, pads.left, &mut pads.right)] {
        let whole = window_output(size[axis], before + *after, kernel[axis], strides[axis], dilations[axis])?;
        let reach = (kernel[axis] - 1) * dilations[axis] + 1;
        let end = size[axis] + before + *after;
        let next_begins = whole * strides[axis];
        let more_to_see = (whole - 1) * strides[axis] + reach < end;
        if more_to_see && next_begins < size[axis] + before {
            *after += next_begins + reach - end;
        }
    }
    Ok(())
}

fn explicit_pads(node: &NodeImport<'_>) -> LoadResult<Pads> {
    let Some(pads) = node.attributes.ints("pads")? else { return Ok(Pads::default()) };
    let [top, left, bottom, right] = pads else {
        return Err(LoadError::unsupported(format!(
            "attribute `pads` has {} values; 2-D windows, with 4, are supported",
            pads.len()
        )));
    };
    let size = |value: &i64| checked("pads", *value, 0);
    Ok(Pads { top: size(top)?, left: size(left)?, bottom: size(bottom)?, right: size(right)? })
}

fn pair(node: &NodeImport<'_>, name: &'static str, least: usize) -> LoadResult<Option<[usize; 2]>> {
    match node.attributes.ints(name)? {
        None => Ok(None),
        Some([height, width]) => Ok(Some([checked(name, *height, least)?, checked(name, *width, least)?])),
        Some(other) => Err(LoadError::unsupported(format!(
            "attribute `{name}` has {} values; 2-D windows, with 2, are supported",
            other.len()
        ))),
    }
}

fn checked(name: &str, value: i64, least: usize) -> LoadResult<usize> {
    usize::try_from(value).ok().filter(|size| (least..=MAX_WINDOW_ATTRIBUTE).contains(size)).ok_or_else(|| {
        LoadError::malformed(format!("attribute `{name}` holds {value}, expected {least} to {MAX_WINDOW_ATTRIBUTE}"))
    })
}
