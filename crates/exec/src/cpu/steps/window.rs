//! From the model's windows to the kernels'.

use insula_kernels::Window;

/// `window` over images of `input` with outputs of `output`, both `[N, H, W, C]`. `None` for tensors of another rank.
pub(super) fn kernel_window(window: &insula_model::Window, input: &[usize], output: &[usize]) -> Option<Window> {
    let (&[_, input_height, input_width, _], &[_, height, width, _]) = (input, output) else { return None };
    Some(Window {
        input: [input_height, input_width],
        output: [height, width],
        kernel: window.kernel,
        strides: window.strides,
        dilations: window.dilations,
        pads: [window.pads.top, window.pads.left],
    })
}
