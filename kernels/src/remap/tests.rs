//! Against the definition, element by element.

use super::*;
use proptest::prelude::*;

const FILL: u32 = 999_999;

fn reference(shape: &[usize], positions: &[Vec<Option<usize>>], input: &[u32]) -> Vec<u32> {
    let count = positions.iter().map(Vec::len).product();
    let element = |mut index: usize| {
        let mut from = Some(0);
        let mut stride = 1;
        for (axis, positions) in positions.iter().enumerate().rev() {
            let position = positions[index % positions.len()];
            index /= positions.len();
            from = from.zip(position).map(|(from, position)| from + position * stride);
            stride *= shape[axis];
        }
        from.map_or(FILL, |from| input[from])
    };
    (0..count).map(element).collect()
}

fn remapped(shape: &[usize], positions: &[Vec<Option<usize>>], cut: usize) -> Vec<u32> {
    let input: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
    let maps = positions.iter().map(|positions| AxisMap::new(positions.iter().copied())).collect();
    let remap = Remap::new(shape, maps).unwrap();
    let mut out = vec![7u32; remap.lines() * remap.line_elements()];
    let cut = cut % (remap.lines() + 1);
    for lines in [0..cut, cut..remap.lines()] {
        let (input, out) = (bytemuck::cast_slice(&input), bytemuck::cast_slice_mut(&mut out));
        remap.run(4, lines, input, &FILL.to_ne_bytes(), out);
    }
    out
}

fn axis(size: usize) -> impl Strategy<Value = (usize, Vec<Option<usize>>)> {
    let anything = proptest::collection::vec(proptest::option::weighted(0.8, 0..size), 1..7);
    let whole = Just((0..size).map(Some).collect::<Vec<_>>());
    let backwards = Just((0..size).rev().map(Some).collect::<Vec<_>>());
    let repeated = (0..size, 1usize..5).prop_map(|(at, count)| vec![Some(at); count]);
    (Just(size), prop_oneof![anything, whole.clone(), whole, backwards, repeated])
}

proptest! {
    #[test]
    fn elements_land_where_the_definition_says(axes in proptest::collection::vec((1usize..6).prop_flat_map(axis), 0..5), cut: usize) {
        let (shape, positions): (Vec<usize>, Vec<_>) = axes.into_iter().unzip();
        let input: Vec<u32> = (0..shape.iter().product::<usize>() as u32).collect();
        prop_assert_eq!(remapped(&shape, &positions, cut), reference(&shape, &positions, &input));
    }
}

#[test]
fn a_long_even_map_takes_one_stretch() {
    assert_eq!(AxisMap::new((0..1_000_000).map(|o| Some(2 * o))).stretches.len(), 1);
    assert_eq!(AxisMap::new((0..1_000_000).map(|_| None)).stretches.len(), 1);
}

#[test]
fn whole_axes_inside_move_as_one() {
    let remap = Remap::new(
        &[2, 3, 4, 5],
        vec![AxisMap::whole(2), AxisMap::new([Some(1)]), AxisMap::whole(4), AxisMap::whole(5)],
    );
    assert_eq!(remap.unwrap().block, 20);
}

#[test]
fn what_reaches_beyond_the_input_is_refused() {
    assert_eq!(Remap::new(&[3], vec![AxisMap::new([Some(3)])]), None);
    assert_eq!(Remap::new(&[3, 3], vec![AxisMap::whole(3)]), None);
}

#[test]
fn a_tensor_without_elements_is_copied() {
    let remap = Remap::new(&[2, 0], vec![AxisMap::whole(2), AxisMap::new([None, None])]).unwrap();
    let mut out = [0u8; 4];
    remap.run(1, 0..remap.lines(), &[], &[9], &mut out);
    assert_eq!(out, [9; 4]);
}
