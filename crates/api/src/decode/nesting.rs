//! The brackets of a tensor's `data`: flat, or nested exactly as the shape says. It counts, and never sees an element. The
//! tensor filler tells it of every bracket and every element.

use insula_core::Shape;
use insula_core::shape::MAX_RANK;

/// How far into the nested arrays the filler is. Faults are given as text without the input's name.
#[derive(Debug)]
pub(super) struct Nesting {
    depth: usize,
    /// Elements so far of each open array, outermost first.
    counts: [usize; MAX_RANK],
    /// The depth at which elements stand, once the first was met.
    leaf: Option<usize>,
}

impl Nesting {
    /// Inside the outermost array.
    pub(super) fn new() -> Nesting {
        Nesting { depth: 1, counts: [0; MAX_RANK], leaf: None }
    }

    /// An inner array begins.
    pub(super) fn open(&mut self, shape: &Shape) -> Result<(), String> {
        if self.leaf.is_some_and(|leaf| self.depth >= leaf) {
            return Err(format!("is ragged: there is an array among the elements of {}", self.path()));
        }
        if self.depth >= shape.rank() {
            return Err(format!("is nested more than {} deep, shape {shape} is not", shape.rank().max(1)));
        }
        self.counts[self.depth - 1] += 1;
        self.counts[self.depth] = 0;
        self.depth += 1;
        Ok(())
    }

    /// An element stands here.
    #[inline]
    pub(super) fn element(&mut self, shape: &Shape) -> Result<(), String> {
        if self.leaf != Some(self.depth) {
            self.first_element(shape)?;
        }
        self.counts[self.depth - 1] += 1;
        Ok(())
    }

    #[cold]
    fn first_element(&mut self, shape: &Shape) -> Result<(), String> {
        if let Some(leaf) = self.leaf {
            return Err(format!("is ragged: {} holds an element where it should hold arrays {leaf} deep", self.path()));
        }
        if self.depth != 1 && self.depth != shape.rank() {
            let (depth, rank) = (self.depth, shape.rank());
            return Err(format!("is nested {depth} deep, it must be flat or nested {rank} deep as shape {shape} is"));
        }
        self.leaf = Some(self.depth);
        Ok(())
    }

    /// The innermost array ends. True when that was the outermost one.
    pub(super) fn close(&mut self, shape: &Shape) -> Result<bool, String> {
        let level = self.depth - 1;
        let count = self.counts[level];
        // the total of a flat array is the filler's to judge
        let nested = self.leaf != Some(1) && (level > 0 || count > 0);
        if nested && shape.dims().get(level) != Some(&count) {
            let expected = shape.dims().get(level).copied().unwrap_or(0);
            let at = self.path();
            return Err(format!("is ragged: {at} has {count} elements, shape {shape} has {expected} there"));
        }
        if level == 0 {
            return Ok(true);
        }
        self.depth = level;
        Ok(false)
    }

    /// The innermost array, by its indices.
    fn path(&self) -> String {
        if self.depth == 1 {
            return "the outermost array".into();
        }
        let indices: Vec<_> =
            self.counts[..self.depth - 1].iter().map(|count| format!("[{}]", count.saturating_sub(1))).collect();
        format!("the array at {}", indices.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks `brackets`, in which `.` is an element.
    fn walk(brackets: &str, dims: &[usize]) -> Result<(), String> {
        let shape = Shape::new(dims).unwrap();
        let mut nesting = Nesting::new();
        for character in brackets.chars().skip(1) {
            match character {
                '[' => nesting.open(&shape)?,
                '.' => nesting.element(&shape)?,
                _ => {
                    nesting.close(&shape)?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn flat_and_exactly_nested_data_pass() {
        for good in ["[......]", "[[...][...]]"] {
            walk(good, &[2, 3]).unwrap();
        }
        walk("[[[.][.]]]", &[1, 2, 1]).unwrap();
        walk("[.]", &[]).unwrap();
    }

    #[test]
    fn ragged_data_is_told_where() {
        for (bad, named) in [
            ("[[...][..]]", "[1]"),
            ("[[...]]", "outermost"),
            ("[[...][...][...]]", "outermost"),
            ("[[...].]", "outermost"),
            ("[[][]]", "[0]"),
        ] {
            assert!(walk(bad, &[2, 3]).unwrap_err().contains(named), "{bad}");
        }
        assert!(walk("[.[.]]", &[2, 1]).unwrap_err().contains("among"));
        assert!(walk("[[[.", &[2, 1]).unwrap_err().contains("more than 2 deep"));
        assert!(walk("[[.", &[2, 1, 1]).unwrap_err().contains("nested 2 deep"));
        assert!(walk("[[.", &[]).unwrap_err().contains("deep"));
    }
}
