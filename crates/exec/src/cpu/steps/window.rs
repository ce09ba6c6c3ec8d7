//! From the model's windows to the kernels'.

use insula_kernels::Window;

/// `window` over images of `input` with outputs of `output`, both `[N, H, W, C]`. `None` for tensors of another rank.
pub(super) fn kernel_window(window: &insula_model::Window, input: &[usize], output: &[usize]) -> Option<Window> {
    let (&[_, input_height, input_width, _], &[_, height, width, _]) = (input, output) else { return None };
    Some(Window {
        input: [1, input_height, input_width],
        output: [1, height, width],
        kernel: flat(window.kernel, 1),
        strides: flat(window.strides, 1),
        dilations: flat(window.dilations, 1),
        pads: flat([window.pads.top, window.pads.left], 0),
    })
}

/// A pair for height and width as the kernels have it, for images of one plane.
fn flat([height, width]: [usize; 2], depth: usize) -> [usize; 3] {
    [depth, height, width]
}
