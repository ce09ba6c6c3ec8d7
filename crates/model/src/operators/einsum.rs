//! Einsum, made of diagonals, sums, transpositions and matrix products, two operands at a time. It reads the equation; what
//! the parts may do with the batch they refuse themselves.

use std::collections::BTreeMap;

use smallvec::smallvec;

use crate::error::{LoadError, LoadResult, quoted};
use crate::graph::{Dim, ValueId};
use crate::op::movement::{AxisSlice, Movement};
use crate::op::{Op, Reduce, Reduction};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::{Dims, shown};

pub(super) fn einsum(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let text =
        node.attributes.text("equation")?.ok_or_else(|| LoadError::malformed("attribute `equation` is missing"))?;
    let equation: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&*equation, None),
    };
    let names: Vec<&str> = left.split(',').collect();
    if names.len() != node.inputs.len() {
        return Err(LoadError::malformed(format!(
            "equation {} names {} operands of {}",
            quoted(text),
            names.len(),
            node.inputs.len()
        )));
    }
    let mut terms = Vec::new();
    for (index, names) in names.iter().enumerate() {
        let value = node.value(index)?;
        terms.push(Term { value, labels: labels(names, Some(node.rank(value)))? });
    }
    let output = output_labels(&terms, right)?;
    let sizes = sizes(node, &terms)?;
    for term in &mut terms {
        term.take_diagonals(node)?;
        term.drop_stretched(node, &sizes)?;
    }
    let mut terms = terms.into_iter();
    let mut result = terms.next().ok_or_else(|| LoadError::malformed("it has no operand"))?;
    let rest: Vec<Term> = terms.collect();
    for (index, term) in rest.iter().enumerate() {
        let later =
            |label: &Label| output.contains(label) || rest[index + 1..].iter().any(|term| term.labels.contains(label));
        result = product(node, result, term.clone(), later)?;
    }
    result.sum_all_but(node, |label| output.contains(label))?;
    if let Some(missing) = output.iter().find(|label| !result.labels.contains(label)) {
        return Err(LoadError::malformed(format!("the equation's output names {missing:?}, which no operand has")));
    }
    result.transpose(node, &output)?;
    Ok(Item::Value(result.value))
}

/// A letter, or a position counted from the end of those that `...` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Rest(usize),
    Letter(char),
}

/// A tensor and the labels of its axes.
#[derive(Debug, Clone)]
struct Term {
    value: ValueId,
    labels: Vec<Label>,
}

/// The labels that `names` lists; `...` stands for what `rank` has more than letters, or in an output for all of `Rest`.
fn labels(names: &str, rank: Option<usize>) -> LoadResult<Vec<Label>> {
    let (before, after) = names.split_once("...").unwrap_or((names, ""));
    let letters = before.len() + after.len();
    if let Some(bad) = before.chars().chain(after.chars()).find(|letter| !letter.is_ascii_alphabetic()) {
        return Err(LoadError::malformed(format!("the equation holds {bad:?}, expected letters")));
    }
    let rest = match rank {
        Some(rank) if names.contains("...") => rank.checked_sub(letters),
        Some(rank) => (rank == letters).then_some(0),
        None => Some(0),
    };
    let rest = rest.ok_or_else(|| {
        LoadError::malformed(format!("{} does not name the axes of a tensor that has {rank:?}", quoted(names)))
    })?;
    let letter = |text: &str| text.chars().map(Label::Letter).collect::<Vec<_>>();
    let middle: Vec<Label> = (0..rest).rev().map(Label::Rest).collect();
    Ok([letter(before), middle, letter(after)].concat())
}

/// What the equation says, or the letters that occur once in alphabetical order, behind all of `...`.
fn output_labels(terms: &[Term], named: Option<&str>) -> LoadResult<Vec<Label>> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    for label in terms.iter().flat_map(|term| &term.labels) {
        *counts.entry(*label).or_default() += 1;
    }
    let is_rest = |label: &&Label| matches!(label, Label::Rest(_));
    let rest: Vec<Label> = counts.keys().filter(is_rest).rev().copied().collect();
    let Some(named) = named else {
        let once = counts.iter().filter(|(label, count)| **count == 1 && !is_rest(label)).map(|(label, _)| *label);
        return Ok(rest.into_iter().chain(once).collect());
    };
    let Some((before, after)) = named.split_once("...") else { return labels(named, None) };
    Ok([labels(before, None)?, rest, labels(after, None)?].concat())
}

/// The size of each label: 1 stretches to any other.
fn sizes(node: &NodeImport<'_>, terms: &[Term]) -> LoadResult<BTreeMap<Label, Dim>> {
    let mut sizes = BTreeMap::new();
    for term in terms {
        for (label, dim) in term.labels.iter().zip(node.dims(term.value)) {
            let size = sizes.entry(*label).or_insert(dim);
            match (*size, dim) {
                (found, other) if found == other || other == Dim::Fixed(1) => {}
                (Dim::Fixed(1), other) => *size = other,
                (found, other) => {
                    return Err(LoadError::malformed(format!("{label:?} is both {found:?} and {other:?} long")));
                }
            }
        }
    }
    Ok(sizes)
}

impl Term {
    /// One axis for a label that occurs twice: the elements where both positions are the same.
    fn take_diagonals(&mut self, node: &mut NodeImport<'_>) -> LoadResult<()> {
        while let Some((first, second)) = self.repeated() {
            let label = self.labels[first];
            let others = (0..self.labels.len()).filter(|axis| *axis != first && *axis != second);
            let order: Vec<usize> = others.chain([first, second]).collect();
            let moved = node.transpose(self.value, &order)?;
            let mut dims = node.dims(moved);
            let (Some(Dim::Fixed(columns)), Some(Dim::Fixed(rows))) = (dims.pop(), dims.pop()) else {
                return Err(crate::shape_inference::rows_meet("a diagonal is taken along it"));
            };
            if rows != columns {
                return Err(LoadError::malformed(format!("a diagonal of {rows} x {columns}")));
            }
            let axis = dims.len();
            dims.push(Dim::Fixed(rows * columns));
            let flat = node.view(moved, dims)?;
            let slice = AxisSlice { axis, start: 0, step: rows as i64 + 1, size: rows };
            self.value = node.compute(Op::Move(Movement::Slice(smallvec![slice])), &[flat])?;
            self.labels = order[..axis].iter().map(|axis| self.labels[*axis]).chain([label]).collect();
        }
        Ok(())
    }

    fn repeated(&self) -> Option<(usize, usize)> {
        self.labels.iter().enumerate().find_map(|(first, label)| {
            let second = self.labels[first + 1..].iter().position(|other| other == label)?;
            Some((first, first + 1 + second))
        })
    }

    /// Takes axes of one element away where another operand has more.
    fn drop_stretched(&mut self, node: &mut NodeImport<'_>, sizes: &BTreeMap<Label, Dim>) -> LoadResult<()> {
        let dims = node.dims(self.value);
        let kept: Vec<usize> = (0..dims.len())
            .filter(|axis| dims[*axis] != Dim::Fixed(1) || sizes.get(&self.labels[*axis]) == Some(&Dim::Fixed(1)))
            .collect();
        self.value = node.view(self.value, kept.iter().map(|axis| dims[*axis]).collect())?;
        self.labels = kept.iter().map(|axis| self.labels[*axis]).collect();
        Ok(())
    }

    fn sum_all_but(&mut self, node: &mut NodeImport<'_>, kept: impl Fn(&Label) -> bool) -> LoadResult<()> {
        let axes: crate::op::Axes = (0..self.labels.len()).filter(|axis| !kept(&self.labels[*axis])).collect();
        if axes.is_empty() {
            return Ok(());
        }
        let reduce = Reduce { reduction: Reduction::Sum, axes, keep_dims: false };
        self.value = node.compute(Op::Reduce(reduce), &[self.value])?;
        self.labels.retain(|label| kept(label));
        Ok(())
    }

    /// Brings the axes into the order of `labels`, which are the term's.
    fn transpose(&mut self, node: &mut NodeImport<'_>, labels: &[Label]) -> LoadResult<()> {
        let order: Vec<usize> =
            labels.iter().filter_map(|label| self.labels.iter().position(|own| own == label)).collect();
        if order.len() != self.labels.len() {
            return Err(LoadError::malformed("the equation's output names an axis twice"));
        }
        self.value = node.transpose(self.value, &order)?;
        self.labels = labels.to_vec();
        Ok(())
    }

    fn dims_of(&self, node: &NodeImport<'_>, labels: &[Label]) -> Dims {
        let dims = node.dims(self.value);
        labels.iter().filter_map(|label| Some(dims[self.labels.iter().position(|own| own == label)?])).collect()
    }
}

/// The product of two terms, summed over the labels that both have and nobody needs later.
fn product(
    node: &mut NodeImport<'_>,
    mut left: Term,
    mut right: Term,
    later: impl Fn(&Label) -> bool,
) -> LoadResult<Term> {
    // the batch's rows are rows of the product
    if node.dims(right.value).contains(&Dim::Batch) && !node.dims(left.value).contains(&Dim::Batch) {
        std::mem::swap(&mut left, &mut right);
    }
    let (left_labels, right_labels) = (left.labels.clone(), right.labels.clone());
    left.sum_all_but(node, |label| later(label) || right_labels.contains(label))?;
    right.sum_all_but(node, |label| later(label) || left_labels.contains(label))?;
    let both = |label: &&Label| right.labels.contains(label);
    let shared: Vec<Label> = left.labels.iter().filter(both).filter(|label| later(label)).copied().collect();
    let summed: Vec<Label> = left.labels.iter().filter(both).filter(|label| !later(label)).copied().collect();
    let rows: Vec<Label> = left.labels.iter().filter(|label| !both(label)).copied().collect();
    let columns: Vec<Label> = right.labels.iter().filter(|label| !left.labels.contains(label)).copied().collect();
    left.transpose(node, &[&shared[..], &rows, &summed].concat())?;
    right.transpose(node, &[&shared[..], &summed, &columns].concat())?;
    let (shared_dims, row_dims) = (left.dims_of(node, &shared), left.dims_of(node, &rows));
    let (column_dims, depth) = (right.dims_of(node, &columns), count(&left.dims_of(node, &summed))?);
    // without shared axes all rows may stay as they are
    let rows_inside = match shared.is_empty() && !row_dims.is_empty() {
        true => row_dims.clone(),
        false => smallvec![count(&row_dims)?],
    };
    let join = |parts: [&[Dim]; 3]| parts.concat().into_iter().collect::<Dims>();
    let left_value = node.view(left.value, join([&shared_dims, &rows_inside, &[depth]]))?;
    let right_value = node.view(right.value, join([&shared_dims, &[depth], &[count(&column_dims)?]]))?;
    let value = node.compute(Op::MatMul, &[left_value, right_value])?;
    let value = node.view(value, join([&shared_dims, &row_dims, &column_dims]))?;
    Ok(Term { value, labels: [shared, rows, columns].concat() })
}

fn count(dims: &[Dim]) -> LoadResult<Dim> {
    let mut count: usize = 1;
    for dim in dims {
        match dim {
            Dim::Fixed(size) => {
                count = count
                    .checked_mul(*size)
                    .ok_or_else(|| LoadError::limit(format!("{} has too many elements", shown(dims))))?;
            }
            Dim::Batch if dims.len() == 1 => return Ok(Dim::Batch),
            Dim::Batch => return Err(crate::shape_inference::rows_meet("it would be joined with another axis")),
        }
    }
    Ok(Dim::Fixed(count))
}
