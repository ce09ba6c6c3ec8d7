//! From ONNX operators to the graph's own: one entry an operator, one file a family. Each reads its attributes and inputs as
//! the model's operator set defines them and adds nodes, or refuses. Whatever is not in the table is refused by name.

mod arithmetic;
mod attention;
mod attributes;
mod broadcasting;
mod causal_convolution;
mod comparison;
mod compose;
mod conversion;
mod convolution;
mod einsum;
mod finding;
mod function;
mod indexing;
mod layer_normalization;
mod loss;
mod node_import;
mod normalization;
mod pooling;
mod product;
mod quantization;
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
mod softmax;
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
    operator("Abs", 1, 1, function::abs),
    operator("Acos", 1, 1, function::acos),
    operator("Acosh", 1, 1, function::acosh),
    operator("Add", 2, 2, arithmetic::add),
    operator("AffineGrid", 2, 2, sampling::affine_grid),
    operator("And", 2, 2, comparison::and),
    operator("ArgMax", 1, 1, reduction::arg_max),
    operator("ArgMin", 1, 1, reduction::arg_min),
    operator("Asin", 1, 1, function::asin),
    operator("Asinh", 1, 1, function::asinh),
    operator("Atan", 1, 1, function::atan),
    operator("Atanh", 1, 1, function::atanh),
    operator("Attention", 3, 7, attention::attention),
    operator("AveragePool", 1, 1, pooling::average_pool),
    operator("BatchNormalization", 5, 5, normalization::batch_normalization),
    operator("BitCast", 1, 1, conversion::bit_cast),
    operator("BitShift", 2, 2, comparison::shift),
    operator("BitwiseAnd", 2, 2, comparison::and),
    operator("BitwiseNot", 1, 1, comparison::bitwise_not),
    operator("BitwiseOr", 2, 2, comparison::or),
    operator("BitwiseXor", 2, 2, comparison::xor),
    operator("Cast", 1, 1, conversion::cast),
    operator("CastLike", 2, 2, conversion::cast_like),
    operator("CausalConvWithState", 2, 4, causal_convolution::causal_conv_with_state),
    operator("Ceil", 1, 1, function::ceil),
    operator("Celu", 1, 1, function::celu),
    operator("CenterCropPad", 2, 2, slicing::center_crop_pad),
    operator("Clip", 1, 3, function::clip),
    operator("Col2Im", 3, 3, sampling::col2im),
    operator("Compress", 2, 2, indexing::compress),
    operator("Concat", 1, usize::MAX, slicing::concat),
    operator("Constant", 0, 0, shape_arithmetic::constant),
    operator("ConstantOfShape", 1, 1, broadcasting::constant_of_shape),
    operator("Conv", 2, 3, convolution::conv),
    operator("ConvInteger", 2, 4, quantized_product::conv_integer),
    operator("ConvTranspose", 2, 3, convolution::conv_transpose),
    operator("Cos", 1, 1, function::cos),
    operator("Cosh", 1, 1, function::cosh),
    operator("CumProd", 2, 2, reduction::cum_prod),
    operator("CumSum", 2, 2, reduction::cum_sum),
    operator("DeformConv", 3, 5, convolution::deform_conv),
    operator("DepthToSpace", 1, 1, reshaping::depth_to_space),
    operator("DequantizeLinear", 2, 3, quantization::dequantize_linear),
    operator("Div", 2, 2, arithmetic::div),
    operator("Dropout", 1, 3, reshaping::dropout),
    operator("DynamicQuantizeLinear", 1, 1, quantization::dynamic_quantize_linear),
    operator("Einsum", 1, usize::MAX, einsum::einsum),
    operator("Elu", 1, 1, function::elu),
    operator("Equal", 2, 2, comparison::equal),
    operator("Erf", 1, 1, function::erf),
    operator("Exp", 1, 1, function::exp),
    operator("Expand", 2, 2, broadcasting::expand),
    operator("EyeLike", 1, 1, broadcasting::eye_like),
    operator("Flatten", 1, 1, reshaping::flatten),
    operator("Floor", 1, 1, function::floor),
    operator("GRU", 3, 6, recurrent::gru),
    operator("Gather", 2, 2, indexing::gather),
    operator("GatherElements", 2, 2, indexing::gather_elements),
    operator("GatherND", 2, 2, indexing::gather_nd),
    operator("Gelu", 1, 1, function::gelu),
    operator("Gemm", 2, 3, product::gemm),
    operator("GlobalAveragePool", 1, 1, pooling::global_average_pool),
    operator("GlobalLpPool", 1, 1, pooling::global_lp_pool),
    operator("GlobalMaxPool", 1, 1, pooling::global_max_pool),
    operator("Greater", 2, 2, comparison::greater),
    operator("GreaterOrEqual", 2, 2, comparison::greater_or_equal),
    operator("GridSample", 2, 2, sampling::grid_sample),
    operator("GroupNormalization", 3, 3, layer_normalization::group_normalization),
    operator("HardSigmoid", 1, 1, function::hard_sigmoid),
    operator("HardSwish", 1, 1, function::hard_swish),
    operator("Hardmax", 1, 1, softmax::hardmax),
    operator("Identity", 1, 1, reshaping::identity),
    operator("InstanceNormalization", 3, 3, layer_normalization::instance_normalization),
    operator("IsInf", 1, 1, comparison::is_inf),
    operator("IsNaN", 1, 1, comparison::is_nan),
    operator("LRN", 1, 1, layer_normalization::lrn),
    operator("LSTM", 3, 8, recurrent::lstm),
    operator("LayerNormalization", 2, 3, layer_normalization::layer_normalization),
    operator("LeakyRelu", 1, 1, function::leaky_relu),
    operator("Less", 2, 2, comparison::less),
    operator("LessOrEqual", 2, 2, comparison::less_or_equal),
    operator("Log", 1, 1, function::log),
    operator("LogSoftmax", 1, 1, softmax::log_softmax),
    operator("LpNormalization", 1, 1, layer_normalization::lp_normalization),
    operator("LpPool", 1, 1, pooling::lp_pool),
    operator("MatMul", 2, 2, product::matmul),
    operator("MatMulInteger", 2, 4, quantized_product::matmul_integer),
    operator("Max", 1, usize::MAX, arithmetic::max),
    operator("MaxPool", 1, 1, pooling::max_pool),
    operator("MaxUnpool", 2, 3, sampling::max_unpool),
    operator("Mean", 1, usize::MAX, arithmetic::mean),
    operator("MeanVarianceNormalization", 1, 1, layer_normalization::mean_variance_normalization),
    operator("Min", 1, usize::MAX, arithmetic::min),
    operator("Mish", 1, 1, function::mish),
    operator("Mod", 2, 2, arithmetic::modulo),
    operator("Mul", 2, 2, arithmetic::mul),
    operator("Neg", 1, 1, function::neg),
    operator("NegativeLogLikelihoodLoss", 2, 3, loss::negative_log_likelihood_loss),
    operator("NonMaxSuppression", 2, 5, finding::non_max_suppression),
    operator("NonZero", 1, 1, finding::non_zero),
    operator("Not", 1, 1, comparison::not),
    operator("OneHot", 3, 3, indexing::one_hot),
    operator("Or", 2, 2, comparison::or),
    operator("PRelu", 2, 2, arithmetic::prelu),
    operator("Pad", 1, 4, slicing::pad),
    operator("Pow", 2, 2, arithmetic::pow),
    operator("QLinearConv", 8, 9, quantized_product::qlinear_conv),
    operator("QLinearMatMul", 8, 8, quantized_product::qlinear_matmul),
    operator("QuantizeLinear", 2, 3, quantization::quantize_linear),
    operator("RMSNormalization", 2, 2, layer_normalization::rms_normalization),
    operator("RNN", 3, 6, recurrent::rnn),
    operator("Range", 3, 3, broadcasting::range),
    operator("Reciprocal", 1, 1, function::reciprocal),
    operator("ReduceL1", 1, 2, reduction::reduce_l1),
    operator("ReduceL2", 1, 2, reduction::reduce_l2),
    operator("ReduceLogSum", 1, 2, reduction::reduce_log_sum),
    operator("ReduceLogSumExp", 1, 2, reduction::reduce_log_sum_exp),
    operator("ReduceMax", 1, 2, reduction::reduce_max),
    operator("ReduceMean", 1, 2, reduction::reduce_mean),
    operator("ReduceMin", 1, 2, reduction::reduce_min),
    operator("ReduceProd", 1, 2, reduction::reduce_prod),
    operator("ReduceSum", 1, 2, reduction::reduce_sum),
    operator("ReduceSumSquare", 1, 2, reduction::reduce_sum_square),
    operator("Relu", 1, 1, function::relu),
    operator("Reshape", 2, 2, reshaping::reshape),
    operator("Resize", 1, 4, resizing::resize),
    operator("ReverseSequence", 2, 2, indexing::reverse_sequence),
    operator("RoiAlign", 3, 3, sampling::roi_align),
    operator("RotaryEmbedding", 3, 4, rotary_embedding::rotary_embedding),
    operator("Round", 1, 1, function::round),
    operator("Scatter", 3, 3, indexing::scatter_elements),
    operator("ScatterElements", 3, 3, indexing::scatter_elements),
    operator("ScatterND", 3, 3, indexing::scatter_nd),
    operator("Selu", 1, 1, function::selu),
    operator("Shape", 1, 1, shape_arithmetic::shape),
    operator("Shrink", 1, 1, function::shrink),
    operator("Sigmoid", 1, 1, function::sigmoid),
    operator("Sign", 1, 1, function::sign),
    operator("Sin", 1, 1, function::sin),
    operator("Sinh", 1, 1, function::sinh),
    operator("Size", 1, 1, broadcasting::size),
    operator("Slice", 1, 5, slicing::slice),
    operator("Softmax", 1, 1, softmax::softmax),
    operator("SoftmaxCrossEntropyLoss", 2, 3, loss::softmax_cross_entropy_loss),
    operator("Softplus", 1, 1, function::softplus),
    operator("Softsign", 1, 1, function::softsign),
    operator("SpaceToDepth", 1, 1, reshaping::space_to_depth),
    operator("Split", 1, 2, slicing::split),
    operator("Sqrt", 1, 1, function::sqrt),
    operator("Squeeze", 1, 2, reshaping::squeeze),
    operator("Sub", 2, 2, arithmetic::sub),
    operator("Sum", 1, usize::MAX, arithmetic::sum),
    operator("SwiGLU", 2, 2, function::swiglu),
    operator("Swish", 1, 1, function::swish),
    operator("Tan", 1, 1, function::tan),
    operator("Tanh", 1, 1, function::tanh),
    operator("TensorScatter", 2, 3, indexing::tensor_scatter),
    operator("ThresholdedRelu", 1, 1, function::thresholded_relu),
    operator("Tile", 2, 2, broadcasting::tile),
    operator("TopK", 1, 2, finding::top_k),
    operator("Transpose", 1, 1, reshaping::transpose),
    operator("Trilu", 1, 2, indexing::trilu),
    operator("Unique", 1, 1, finding::unique),
    operator("Unsqueeze", 1, 2, reshaping::unsqueeze),
    operator("Upsample", 1, 2, resizing::upsample),
    operator("Where", 3, 3, comparison::choice),
    operator("Xor", 2, 2, comparison::xor),
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
