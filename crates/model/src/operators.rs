//! From ONNX operators to the graph's own: one entry an operator, one file a family. Each reads its attributes and inputs as
//! the model's operator set defines them and adds nodes, or refuses. Whatever is not in the table is refused by name.

mod attention;
mod attributes;
mod broadcasting;
mod causal_convolution;
mod convolution;
mod einsum;
mod elementwise;
mod finding;
mod indexing;
mod node_import;
mod normalization;
mod pooling;
mod product;
mod quantized_product;
mod recurrent;
mod reduction;
mod reshaping;
mod resizing;
mod rotary_embedding;
mod sampling;
mod shape_arithmetic;
mod size_arithmetic;
mod slicing;
mod window_attributes;

use crate::error::{LoadError, LoadResult, quoted};

pub(crate) use attributes::Attributes;
pub(crate) use node_import::{Item, NodeImport};
pub(crate) use size_arithmetic::follow_sizes;

/// The oldest operator set that is read.
pub const OLDEST_OPSET: i64 = 7;
/// The newest operator set that is read.
pub const NEWEST_OPSET: i64 = 28;

/// The operator that the reader itself follows: a choice between two graphs.
pub(crate) const CONDITIONAL: &str = "If";

/// An operator that is supported.
pub(crate) struct Operator {
    name: &'static str,
    /// The fewest inputs.
    pub min_inputs: usize,
    /// The most inputs.
    pub max_inputs: usize,
    /// Adds the operator's nodes to the graph and gives its first output.
    pub import: fn(&mut NodeImport<'_>) -> LoadResult<Item>,
}

const fn operator(
    name: &'static str,
    min_inputs: usize,
    max_inputs: usize,
    import: fn(&mut NodeImport<'_>) -> LoadResult<Item>,
) -> Operator {
    Operator { name, min_inputs, max_inputs, import }
}

/// Every supported operator, by name.
const OPERATORS: &[Operator] = &[
    operator("Add", 2, 2, elementwise::add),
    operator("AffineGrid", 2, 2, sampling::affine_grid),
    operator("ArgMax", 1, 1, reduction::arg_max),
    operator("Attention", 3, 7, attention::attention),
    operator("AveragePool", 1, 1, pooling::average_pool),
    operator("BatchNormalization", 5, 5, normalization::batch_normalization),
    operator("Cast", 1, 1, elementwise::cast),
    operator("CenterCropPad", 2, 2, slicing::center_crop_pad),
    operator("CausalConvWithState", 2, 4, causal_convolution::causal_conv_with_state),
    operator("Clip", 1, 3, elementwise::clip),
    operator("Col2Im", 3, 3, sampling::col2im),
    operator("Compress", 2, 2, indexing::compress),
    operator("Concat", 1, usize::MAX, slicing::concat),
    operator("Constant", 0, 0, shape_arithmetic::constant),
    operator("ConstantOfShape", 1, 1, broadcasting::constant_of_shape),
    operator("Conv", 2, 3, convolution::conv),
    operator("ConvInteger", 2, 4, quantized_product::conv_integer),
    operator("ConvTranspose", 2, 3, convolution::conv_transpose),
    operator("DeformConv", 3, 5, convolution::deform_conv),
    operator("DepthToSpace", 1, 1, reshaping::depth_to_space),
    operator("Div", 2, 2, elementwise::div),
    operator("Dropout", 1, 3, reshaping::dropout),
    operator("Einsum", 1, usize::MAX, einsum::einsum),
    operator("Expand", 2, 2, broadcasting::expand),
    operator("EyeLike", 1, 1, broadcasting::eye_like),
    operator("Flatten", 1, 1, reshaping::flatten),
    operator("GRU", 3, 6, recurrent::gru),
    operator("Gather", 2, 2, indexing::gather),
    operator("GatherElements", 2, 2, indexing::gather_elements),
    operator("GatherND", 2, 2, indexing::gather_nd),
    operator("Gemm", 2, 3, product::gemm),
    operator("GlobalAveragePool", 1, 1, pooling::global_average_pool),
    operator("GlobalLpPool", 1, 1, pooling::global_lp_pool),
    operator("GlobalMaxPool", 1, 1, pooling::global_max_pool),
    operator("GridSample", 2, 2, sampling::grid_sample),
    operator("Identity", 1, 1, reshaping::identity),
    operator("LSTM", 3, 8, recurrent::lstm),
    operator("LpPool", 1, 1, pooling::lp_pool),
    operator("MatMul", 2, 2, product::matmul),
    operator("MatMulInteger", 2, 4, quantized_product::matmul_integer),
    operator("MaxPool", 1, 1, pooling::max_pool),
    operator("MaxUnpool", 2, 3, sampling::max_unpool),
    operator("Mul", 2, 2, elementwise::mul),
    operator("NonMaxSuppression", 2, 5, finding::non_max_suppression),
    operator("NonZero", 1, 1, finding::non_zero),
    operator("OneHot", 3, 3, indexing::one_hot),
    operator("Pad", 1, 4, slicing::pad),
    operator("QLinearConv", 8, 9, quantized_product::qlinear_conv),
    operator("QLinearMatMul", 8, 8, quantized_product::qlinear_matmul),
    operator("RNN", 3, 6, recurrent::rnn),
    operator("Range", 3, 3, broadcasting::range),
    operator("ReduceMean", 1, 2, reduction::reduce_mean),
    operator("Relu", 1, 1, elementwise::relu),
    operator("Reshape", 2, 2, reshaping::reshape),
    operator("Resize", 1, 4, resizing::resize),
    operator("ReverseSequence", 2, 2, indexing::reverse_sequence),
    operator("RoiAlign", 3, 3, sampling::roi_align),
    operator("RotaryEmbedding", 3, 4, rotary_embedding::rotary_embedding),
    operator("Scatter", 3, 3, indexing::scatter_elements),
    operator("ScatterElements", 3, 3, indexing::scatter_elements),
    operator("ScatterND", 3, 3, indexing::scatter_nd),
    operator("Shape", 1, 1, shape_arithmetic::shape),
    operator("Sigmoid", 1, 1, elementwise::sigmoid),
    operator("Size", 1, 1, broadcasting::size),
    operator("Slice", 1, 5, slicing::slice),
    operator("Softmax", 1, 1, reduction::softmax),
    operator("SpaceToDepth", 1, 1, reshaping::space_to_depth),
    operator("Split", 1, 2, slicing::split),
    operator("Squeeze", 1, 2, reshaping::squeeze),
    operator("Sub", 2, 2, elementwise::sub),
    operator("Tanh", 1, 1, elementwise::tanh),
    operator("TensorScatter", 2, 3, indexing::tensor_scatter),
    operator("Tile", 2, 2, broadcasting::tile),
    operator("TopK", 1, 2, finding::top_k),
    operator("Transpose", 1, 1, reshaping::transpose),
    operator("Trilu", 1, 2, indexing::trilu),
    operator("Unique", 1, 1, finding::unique),
    operator("Unsqueeze", 1, 2, reshaping::unsqueeze),
    operator("Upsample", 1, 2, resizing::upsample),
];

/// The names of the supported operators, in order.
pub fn supported_operators() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|operator| operator.name)
}

/// Fails when the operator `name` of `domain` is not supported; the refusal lists what is.
pub(crate) fn check_known(domain: &str, name: &str) -> LoadResult<()> {
    match is_onnx_domain(domain) && name == CONDITIONAL {
        true => Ok(()),
        false => find(domain, name).map(|_| ()),
    }
}

/// The operator `name` of `domain`; the refusal lists what is supported.
pub(crate) fn find(domain: &str, name: &str) -> LoadResult<&'static Operator> {
    let found = OPERATORS.iter().find(|operator| operator.name == name);
    match found.filter(|_| is_onnx_domain(domain)) {
        Some(operator) => Ok(operator),
        None => {
            let supported: Vec<&str> = supported_operators().collect();
            Err(LoadError::unsupported(format!(
                "operator {} of domain {} is not supported; supported, of domain `ai.onnx`, are {}",
                quoted(name),
                quoted(if is_onnx_domain(domain) { "ai.onnx" } else { domain }),
                supported.join(", ")
            )))
        }
    }
}

/// Whether `domain` is ONNX's own, by either of its names.
pub(crate) fn is_onnx_domain(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}
