//! Attention and RotaryEmbedding, made of products, masks and softmax. Heads that share keys and values are rows of one
//! product, so nothing is repeated.

use insula_core::{DType, Shape};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::elementwise::{Activation, BinaryOp, Comparison, Elementwise};
use crate::op::movement::{Movement, Pad, PadMode};
use crate::op::{Op, Reduce, Reduction};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{is_arithmetic, shown};

/// Softmax of scaled products of queries and keys, with masks, times values.
pub(super) fn attention(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let attributes = Attributes::read(node)?;
    let (query, key, value) = (node.value(0)?, node.value(1)?, node.value(2)?);
    let dtype = node.tensor(query).dtype;
    if !is_arithmetic(dtype) {
        return Err(LoadError::unsupported(format!(
            "input 0 has type {dtype}; attention is supported on FP16 and FP32"
        )));
    }
    let packed = node.rank(query) == 3;
    let query = with_heads(node, query, attributes.query_heads)?;
    let key = with_heads(node, key, attributes.shared_heads)?;
    let value = with_heads(node, value, attributes.shared_heads)?;
    let past = node.optional(4)?.zip(node.optional(5)?);
    let (key, value, offset) = match past {
        Some((past_key, past_value)) => {
            let offset = fixed(node, past_key, 2)?;
            let joined = |node: &mut NodeImport<'_>, past, new| {
                node.compute(Op::Move(Movement::Concat { axis: 2 }), &[past, new])
            };
            (joined(node, past_key, key)?, joined(node, past_value, value)?, offset)
        }
        None => (key, value, 0),
    };
    let Sizes { heads, queries, keys, .. } = Sizes::of(node, query, key)?;
    let scores = scores(node, query, key, attributes.scale)?;
    let capped = soft_cap(node, scores, attributes.soft_cap)?;
    let bias = Bias { node, queries, keys, offset, dtype }.of(&attributes)?;
    let biased = match bias {
        Some(bias) => node.compute(Op::Binary(BinaryOp::Add), &[capped, bias])?,
        None => capped,
    };
    let weights = guarded_softmax(node, biased, bias.is_some())?;
    let output = weighted(node, weights, value, heads)?;
    let shown = [scores, capped, biased, weights][attributes.shown_scores];
    node.more_outputs.extend([key, value, shown].map(Item::Value));
    match packed {
        true => without_heads(node, output).map(Item::Value),
        false => Ok(Item::Value(output)),
    }
}

struct Attributes {
    query_heads: Option<usize>,
    shared_heads: Option<usize>,
    scale: Option<f32>,
    soft_cap: f32,
    causal: bool,
    /// How far to the left and to the right a query sees.
    window: [Option<usize>; 2],
    /// Which stage of the scores the fourth output is.
    shown_scores: usize,
}

impl Attributes {
    fn read(node: &NodeImport<'_>) -> LoadResult<Attributes> {
        let attributes = &node.attributes;
        let heads = |name| match attributes.int(name)? {
            None => Ok(None),
            Some(heads) => usize::try_from(heads)
                .ok()
                .filter(|heads| *heads > 0)
                .map(Some)
                .ok_or_else(|| LoadError::malformed(format!("attribute `{name}` is {heads}, expected at least 1"))),
        };
        let window = |name| Ok::<_, LoadError>(attributes.int(name)?.and_then(|size| usize::try_from(size).ok()));
        let mode = attributes.int("qk_matmul_output_mode")?.unwrap_or(0);
        let shown_scores = usize::try_from(mode).ok().filter(|mode| *mode < 4).ok_or_else(|| {
            LoadError::malformed(format!("attribute `qk_matmul_output_mode` is {mode}, expected 0 to 3"))
        })?;
        // softmax is computed in single precision whatever the type
        attributes.int("softmax_precision")?;
        let has_window = node.opset >= 25;
        Ok(Attributes {
            query_heads: heads("q_num_heads")?,
            shared_heads: heads("kv_num_heads")?,
            scale: attributes.float("scale")?,
            soft_cap: attributes.float("softcap")?.unwrap_or(0.0),
            causal: attributes.flag("is_causal", false)?,
            window: match has_window {
                true => [window("left_window_size")?, window("right_window_size")?],
                false => [None, None],
            },
            shown_scores,
        })
    }
}

/// Sizes of an attention.
struct Sizes {
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
}

impl Sizes {
    fn of(node: &NodeImport<'_>, query: ValueId, key: ValueId) -> LoadResult<Sizes> {
        let (heads, shared) = (fixed(node, query, 1)?, fixed(node, key, 1)?);
        if shared == 0 || !heads.is_multiple_of(shared) {
            return Err(LoadError::malformed(format!("{heads} heads of queries cannot share {shared} of keys")));
        }
        let (queries, keys) = (fixed(node, query, 2)?, fixed(node, key, 2)?);
        Ok(Sizes { heads, queries, keys, width: fixed(node, query, 3)? })
    }
}

fn fixed(node: &NodeImport<'_>, value: ValueId, axis: usize) -> LoadResult<usize> {
    match node.dims(value).get(axis) {
        Some(Dim::Fixed(size)) => Ok(*size),
        _ => Err(LoadError::malformed(format!("{} has no sizes of heads", shown(&node.dims(value))))),
    }
}

/// `[batch, heads, sequence, width]` of `[batch, sequence, heads * width]`, or what has that shape already.
fn with_heads(node: &mut NodeImport<'_>, value: ValueId, heads: Option<usize>) -> LoadResult<ValueId> {
    if node.rank(value) == 4 {
        return Ok(value);
    }
    let (dims, hidden) = (node.dims(value), fixed(node, value, 2)?);
    let heads = heads.filter(|heads| dims.len() == 3 && hidden.is_multiple_of(*heads)).ok_or_else(|| {
        LoadError::malformed(format!("{} cannot be cut into heads: their number must divide it", shown(&dims)))
    })?;
    let cut = [dims[0], dims[1], Dim::Fixed(heads), Dim::Fixed(hidden / heads)];
    let cut = node.view(value, cut.into_iter().collect())?;
    node.transpose(cut, &[0, 2, 1, 3])
}

/// `[batch, sequence, heads * width]` of `[batch, heads, sequence, width]`.
fn without_heads(node: &mut NodeImport<'_>, value: ValueId) -> LoadResult<ValueId> {
    let (heads, width) = (fixed(node, value, 1)?, fixed(node, value, 3)?);
    let moved = node.transpose(value, &[0, 2, 1, 3])?;
    let dims = node.dims(moved);
    node.view(moved, [dims[0], dims[1], Dim::Fixed(heads * width)].into_iter().collect())
}

/// `[batch, heads, queries, keys]`.
fn scores(node: &mut NodeImport<'_>, query: ValueId, key: ValueId, scale: Option<f32>) -> LoadResult<ValueId> {
    let Sizes { heads, queries, keys, width } = Sizes::of(node, query, key)?;
    let shared = fixed(node, key, 1)?;
    let scale = scale.unwrap_or(1.0 / (width as f32).sqrt());
    let factor = node.scalar_constant(node.tensor(query).dtype, scale)?;
    let scaled = node.compute(Op::Binary(BinaryOp::Mul), &[query, factor])?;
    let batch = node.dims(query)[0];
    let rows = [batch, Dim::Fixed(shared), Dim::Fixed(heads / shared * queries), Dim::Fixed(width)];
    let rows = node.view(scaled, rows.into_iter().collect())?;
    let columns = node.transpose(key, &[0, 1, 3, 2])?;
    let scores = node.compute(Op::MatMul, &[rows, columns])?;
    let dims = [node.dims(scores)[0], Dim::Fixed(heads), Dim::Fixed(queries), Dim::Fixed(keys)];
    node.view(scores, dims.into_iter().collect())
}

fn soft_cap(node: &mut NodeImport<'_>, scores: ValueId, cap: f32) -> LoadResult<ValueId> {
    if cap <= 0.0 {
        return Ok(scores);
    }
    let cap = node.scalar_constant(node.tensor(scores).dtype, cap)?;
    let small = node.compute(Op::Binary(BinaryOp::Div), &[scores, cap])?;
    let bounded = node.compute(Op::Activation(Activation::Tanh), &[small])?;
    node.compute(Op::Binary(BinaryOp::Mul), &[bounded, cap])
}

/// Softmax over keys; a query that sees none gets zeros. `masked`: whether there can be such a query.
fn guarded_softmax(node: &mut NodeImport<'_>, scores: ValueId, masked: bool) -> LoadResult<ValueId> {
    let softmax = node.compute(Op::Softmax { axis: 3, logarithm: false }, &[scores])?;
    if !masked {
        return Ok(softmax);
    }
    let dtype = node.tensor(scores).dtype;
    let reduce = Reduce { reduction: Reduction::Max, axes: [3].into_iter().collect(), keep_dims: true };
    let largest = node.compute(Op::Reduce(reduce), &[scores])?;
    let (nothing, zero) = (node.scalar_constant(dtype, f32::NEG_INFINITY)?, node.scalar_constant(dtype, 0.0)?);
    let blind = node.compute(Op::Elementwise(Elementwise::Compare(Comparison::Equal)), &[largest, nothing])?;
    node.compute(Op::Elementwise(Elementwise::Where), &[blind, zero, softmax])
}

/// `[batch, heads, queries, width]`: the sum of values by their weights.
fn weighted(node: &mut NodeImport<'_>, weights: ValueId, value: ValueId, heads: usize) -> LoadResult<ValueId> {
    let (shared, queries) = (fixed(node, value, 1)?, fixed(node, weights, 2)?);
    let dims = node.dims(weights);
    if shared == 0 || !heads.is_multiple_of(shared) {
        return Err(LoadError::malformed(format!("{heads} heads of queries cannot share {shared} of values")));
    }
    let rows = [dims[0], Dim::Fixed(shared), Dim::Fixed(heads / shared * queries), dims[3]];
    let rows = node.view(weights, rows.into_iter().collect())?;
    let output = node.compute(Op::MatMul, &[rows, value])?;
    let dims = node.dims(output);
    node.view(output, [dims[0], Dim::Fixed(heads), Dim::Fixed(queries), dims[3]].into_iter().collect())
}

/// What is added to scores: negative infinity where a query does not see a key.
struct Bias<'a, 'b> {
    node: &'a mut NodeImport<'b>,
    queries: usize,
    keys: usize,
    /// Keys in front of the first query's own.
    offset: usize,
    dtype: DType,
}

impl Bias<'_, '_> {
    fn of(mut self, attributes: &Attributes) -> LoadResult<Option<ValueId>> {
        let lengths = self.node.optional(6)?;
        let mut parts = Vec::new();
        if let Some(mask) = self.node.optional(3)? {
            parts.push(self.mask(mask)?);
        }
        let [left, right] = attributes.window;
        let right = if attributes.causal { Some(0) } else { right };
        if left.is_some() || right.is_some() {
            parts.push(match lengths {
                Some(lengths) => self.moving_window(lengths, left, right)?,
                None => self.window(left, right)?,
            });
        }
        if let Some(lengths) = lengths {
            parts.push(self.padding(lengths)?);
        }
        let mut sum = None;
        for part in parts {
            sum = Some(match sum {
                None => part,
                Some(sum) => self.node.compute(Op::Binary(BinaryOp::Add), &[sum, part])?,
            });
        }
        Ok(sum)
    }

    /// The mask as summands, extended to all keys: those beyond it are not seen.
    fn mask(&mut self, mask: ValueId) -> LoadResult<ValueId> {
        let mask = match self.node.tensor(mask).dtype {
            DType::Bool => self.seen(mask)?,
            _ => mask,
        };
        let dims = self.node.dims(mask);
        let found = fixed(self.node, mask, dims.len().saturating_sub(1))?;
        let Some(missing) = self.keys.checked_sub(found).filter(|missing| *missing > 0) else {
            return Ok(mask);
        };
        let before = dims.iter().map(|_| 0).collect();
        let after = (0..dims.len()).map(|axis| if axis + 1 == dims.len() { missing } else { 0 }).collect();
        let nothing = self.node.scalar_constant(self.dtype, f32::NEG_INFINITY)?;
        self.node.compute(Op::Move(Movement::Pad(Pad { before, after, mode: PadMode::Constant })), &[mask, nothing])
    }

    /// Zero where `seen` is true, negative infinity where it is not.
    fn seen(&mut self, seen: ValueId) -> LoadResult<ValueId> {
        let zero = self.node.scalar_constant(self.dtype, 0.0)?;
        let nothing = self.node.scalar_constant(self.dtype, f32::NEG_INFINITY)?;
        self.node.compute(Op::Elementwise(Elementwise::Where), &[seen, zero, nothing])
    }

    /// `[queries, keys]`: keys from `left` before a query's own to `right` behind it.
    fn window(&mut self, left: Option<usize>, right: Option<usize>) -> LoadResult<ValueId> {
        let elements = self.queries.saturating_mul(self.keys);
        if !self.node.graph.charge_derived(elements.saturating_mul(4)) {
            return Err(LoadError::limit(format!("a mask of {} x {} is too large", self.queries, self.keys)));
        }
        let bias = |index: usize| {
            let (own, key) = (self.offset + index / self.keys, index % self.keys);
            let seen = left.is_none_or(|left| own <= key + left) && right.is_none_or(|right| key <= own + right);
            if seen { 0.0 } else { f32::NEG_INFINITY }
        };
        let values: Vec<f32> = (0..elements).map(bias).collect();
        let constant = Constant::of_f32(self.dtype, Shape::new(&[self.queries, self.keys])?, &values)?;
        self.node.graph.add_constant(self.node.name.clone(), constant)
    }

    /// As [`Bias::window`] where a batch's last query is the last of its valid keys, so that their number decides.
    fn moving_window(&mut self, lengths: ValueId, left: Option<usize>, right: Option<usize>) -> LoadResult<ValueId> {
        let queries = self.integers(&[], &[self.queries as i64])?;
        let lengths = self.by_batch(lengths)?;
        let offset = self.node.compute(Op::Binary(BinaryOp::Sub), &[lengths, queries])?;
        let distances: Vec<i64> =
            (0..self.queries).flat_map(|query| (0..self.keys).map(move |key| key as i64 - query as i64)).collect();
        let distances = self.integers(&[1, 1, self.queries, self.keys], &distances)?;
        let distance = self.node.compute(Op::Binary(BinaryOp::Sub), &[distances, offset])?;
        let mut bias = None;
        let bounds = [
            (left.map(|left| -(left as i64)), Comparison::GreaterOrEqual),
            (right.map(|right| right as i64), Comparison::LessOrEqual),
        ];
        for (bound, comparison) in bounds {
            let Some(bound) = bound else { continue };
            let bound = self.integers(&[], &[bound])?;
            let seen = self.node.compute(Op::Elementwise(Elementwise::Compare(comparison)), &[distance, bound])?;
            let part = self.seen(seen)?;
            bias = Some(match bias {
                None => part,
                Some(bias) => self.node.compute(Op::Binary(BinaryOp::Add), &[bias, part])?,
            });
        }
        bias.ok_or_else(|| LoadError::malformed("its window has no bound"))
    }

    /// `[batch, 1, 1, keys]`: the first keys, as many as are valid.
    fn padding(&mut self, lengths: ValueId) -> LoadResult<ValueId> {
        let positions: Vec<i64> = (0..self.keys as i64).collect();
        let positions = self.integers(&[1, 1, 1, self.keys], &positions)?;
        let lengths = self.by_batch(lengths)?;
        let valid =
            self.node.compute(Op::Elementwise(Elementwise::Compare(Comparison::Less)), &[positions, lengths])?;
        self.seen(valid)
    }

    fn by_batch(&mut self, lengths: ValueId) -> LoadResult<ValueId> {
        let batch = self.node.dims(lengths);
        let ones = std::iter::repeat_n(Dim::Fixed(1), 3);
        self.node.view(lengths, batch.into_iter().chain(ones).collect())
    }

    fn integers(&mut self, dims: &[usize], values: &[i64]) -> LoadResult<ValueId> {
        let constant = Constant::new(DType::Int64, Shape::new(dims)?, bytemuck::cast_slice(values))?;
        self.node.graph.add_constant(self.node.name.clone(), constant)
    }
}
