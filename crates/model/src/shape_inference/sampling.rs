//! Shapes of operations that read images between their pixels. An image is a row, and a row it stays.

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::op::sampling::{Col2Im, Coordinates, Interpolation, Resize, Sampling};
use crate::shape_inference::{Dims, is_arithmetic, rows_meet, shown};

/// What `sampling` makes of `inputs`.
pub(super) fn infer(sampling: &Sampling, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let expected = match sampling {
        Sampling::Resize(_) | Sampling::Col2Im(_) => 1,
        Sampling::Grid(_) => 2,
        Sampling::RoiAlign(_) => 3,
    };
    if inputs.len() != expected {
        return Err(LoadError::malformed(format!("it has {} inputs, expected {expected}", inputs.len())));
    }
    let any_type = match sampling {
        Sampling::Resize(Resize { interpolation: Interpolation::Nearest(_), coordinates, .. }) => {
            !matches!(coordinates, Coordinates::CropAndResize { .. })
        }
        _ => false,
    };
    if !any_type && !is_arithmetic(inputs[0].dtype) {
        return Err(LoadError::unsupported(format!(
            "input 0 has type {}; {} is supported on FP32 and FP16",
            inputs[0].dtype,
            sampling.name()
        )));
    }
    let dims = match sampling {
        Sampling::Resize(resize) => resized(&inputs[0].dims, resize)?,
        Sampling::Grid(_) => sampled(&inputs[0].dims, &inputs[1].dims)?,
        Sampling::RoiAlign(roi) => match (&inputs[0].dims[..], &inputs[1].dims[..], &inputs[2].dims[..]) {
            ([Dim::Batch, ..], ..) => return Err(rows_meet("regions would name the image they lie in")),
            ([_, _, _, channels], [regions, Dim::Fixed(4)], [images]) if regions == images => {
                let [height, width] = roi.output.map(Dim::Fixed);
                Dims::from_iter([*regions, height, width, *channels])
            }
            _ => return Err(unfit(inputs)),
        },
        Sampling::Col2Im(col2im) => images(&inputs[0].dims, col2im).ok_or_else(|| unfit(inputs))?,
    };
    Ok(TensorType { dtype: inputs[0].dtype, dims })
}

fn unfit(inputs: &[&TensorType]) -> LoadError {
    let shapes: Vec<String> = inputs.iter().map(|input| shown(&input.dims)).collect();
    LoadError::malformed(format!("inputs of shapes {} do not fit together", shapes.join(", ")))
}

fn resized(dims: &Dims, resize: &Resize) -> LoadResult<Dims> {
    let mut dims = dims.clone();
    match dims.get_mut(resize.axis) {
        Some(Dim::Fixed(size)) if *size > 0 => *size = resize.size,
        Some(Dim::Batch) => return Err(rows_meet("resizing would mix them")),
        _ => return Err(LoadError::malformed(format!("axis {} of {} cannot be resized", resize.axis, shown(&dims)))),
    }
    Ok(dims)
}

fn sampled(image: &Dims, grid: &Dims) -> LoadResult<Dims> {
    let spatial = image.len().saturating_sub(2);
    let fits = spatial > 0
        && grid.len() == image.len()
        && grid.last() == Some(&Dim::Fixed(spatial))
        && image[0] == grid[0]
        && !image[1..].contains(&Dim::Fixed(0));
    if fits {
        return Ok(grid[..=spatial].iter().chain(image.last()).copied().collect());
    }
    let why = format!("images {} and positions {} do not fit together", shown(image), shown(grid));
    match image.contains(&Dim::Batch) != grid.contains(&Dim::Batch) {
        true => Err(rows_meet(&why)),
        false => Err(LoadError::malformed(why)),
    }
}

fn images(columns: &Dims, col2im: &Col2Im) -> Option<Dims> {
    let &[rows, Dim::Fixed(elements), Dim::Fixed(count)] = &columns[..] else { return None };
    let blocks: usize = col2im.blocks()?.iter().product();
    let block: usize = col2im.block.iter().product();
    if blocks != count || block == 0 || !elements.is_multiple_of(block) {
        return None;
    }
    let sizes = [elements / block].into_iter().chain(col2im.image.iter().copied());
    Some([rows].into_iter().chain(sizes.map(Dim::Fixed)).collect())
}
