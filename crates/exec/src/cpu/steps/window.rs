//! From the model's windows to the kernels'.

use insula_kernels::Window;

/// `window` over images of `input` with outputs of `output`, both `[N, spatial.., C]`. `None` for tensors of another rank.
pub(super) fn kernel_window(window: &insula_model::Window, input: &[usize], output: &[usize]) -> Option<Window> {
    let insula_model::Window { kernel, strides, dilations, pads } = *window;
    Some(Window { input: volume(input)?, output: volume(output)?, kernel, strides, dilations, pads: pads.before })
}

/// The spatial axes of `[N, spatial.., C]`, with 1 in front for those that are not there.
pub(super) fn volume(dims: &[usize]) -> Option<[usize; 3]> {
    let spatial = dims.get(1..dims.len().checked_sub(1)?)?;
    let mut size = [1; 3];
    size.get_mut(3usize.checked_sub(spatial.len())?..)?.copy_from_slice(spatial);
    Some(size)
}
