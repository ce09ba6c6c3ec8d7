//! Where a model's input wants the rows, columns and channels of an image: read from its shape. It moves no data; the
//! image tensor does.

use crate::failure::Failure;

/// How an input lays out one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLayout {
    /// 1 for grey, 3 for colour.
    pub channels: usize,
    /// Whether the channels are the outer dimension (all of one, then all of the next) or lie side by side in each pixel.
    pub channels_first: bool,
    /// The declared height; `None`: any.
    height: Option<usize>,
    /// The declared width; `None`: any.
    width: Option<usize>,
    /// Whether a dimension that counts images comes first.
    batched: bool,
}

impl ImageLayout {
    /// The layout that `shape` (-1: any size) has for an image of `height` and `width`. Known are `[N, C, H, W]`,
    /// `[N, H, W, C]` and the same without N, with 1 or 3 channels, and `[N, H, W]`, which is grey. Where a shape could be
    /// read in two ways, the image's size decides. Fails naming both sizes when the image does not fit.
    pub fn find(shape: &[i64], height: usize, width: usize) -> Result<ImageLayout, Failure> {
        let candidates = candidates(shape);
        let fits = |layout: &&ImageLayout| {
            layout.height.is_none_or(|wanted| wanted == height) && layout.width.is_none_or(|wanted| wanted == width)
        };
        if let Some(layout) = candidates.iter().find(fits) {
            return Ok(*layout);
        }
        let Some(layout) = candidates.first() else {
            return Err(Failure::misused(format_args!(
                "the model's input of shape {shape:?} does not look like one image"
            ))
            .hint("send a JSON request instead: it can hold any input"));
        };
        let side = |side: Option<usize>| side.map_or("any".to_owned(), |side| side.to_string());
        Err(Failure::misused(format_args!(
            "the image is {width} x {height} (width x height) and the model takes {} x {}",
            side(layout.width),
            side(layout.height)
        ))
        .hint("scale or crop the image first: how is for you to say, since it changes what the model sees"))
    }

    /// The shape of a request with one image of `height` and `width`.
    pub fn request_shape(&self, height: usize, width: usize) -> Vec<usize> {
        match (self.batched, self.channels_first) {
            (true, true) => vec![1, self.channels, height, width],
            (true, false) => vec![1, height, width, self.channels],
            (false, true) => vec![self.channels, height, width],
            (false, false) => vec![height, width, self.channels],
        }
    }
}

fn candidates(shape: &[i64]) -> Vec<ImageLayout> {
    let of = |batched: bool, dims: [i64; 3], channels_first: bool| {
        let [channels, height, width] = if channels_first { dims } else { [dims[2], dims[0], dims[1]] };
        let channels = usize::try_from(channels).ok().filter(|channels| matches!(channels, 1 | 3))?;
        let side = |size: i64| if size == -1 { Some(None) } else { usize::try_from(size).ok().map(Some) };
        Some(ImageLayout { channels, channels_first, height: side(height)?, width: side(width)?, batched })
    };
    let either = |batched, dims| [of(batched, dims, true), of(batched, dims, false)];
    let found = match *shape {
        [-1 | 1, a, b, c] => either(true, [a, b, c]),
        // One grey image of `[N, H, W]` has the shape and the bytes of one of `[C, H, W]`.
        [-1, a, b] => [of(false, [1, a, b], true), of(false, [-1, a, b], false)],
        [a, b, c] => either(false, [a, b, c]),
        _ => [None, None],
    };
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(shape: &[i64], height: usize, width: usize) -> Result<(Vec<usize>, usize, bool), Failure> {
        let layout = ImageLayout::find(shape, height, width)?;
        Ok((layout.request_shape(height, width), layout.channels, layout.channels_first))
    }

    #[test]
    fn the_usual_shapes_are_known() {
        assert_eq!(request(&[-1, 1, 8, 8], 8, 8), Ok((vec![1, 1, 8, 8], 1, true)));
        assert_eq!(request(&[1, 3, 224, 224], 224, 224), Ok((vec![1, 3, 224, 224], 3, true)));
        assert_eq!(request(&[-1, 224, 224, 3], 224, 224), Ok((vec![1, 224, 224, 3], 3, false)));
        assert_eq!(request(&[3, 32, 48], 32, 48), Ok((vec![3, 32, 48], 3, true)));
        assert_eq!(request(&[32, 48, 3], 32, 48), Ok((vec![32, 48, 3], 3, false)));
        assert_eq!(request(&[-1, 28, 28], 28, 28), Ok((vec![1, 28, 28], 1, true)));
    }

    #[test]
    fn open_sizes_take_those_of_the_image() {
        assert_eq!(request(&[-1, 3, -1, -1], 5, 7), Ok((vec![1, 3, 5, 7], 3, true)));
        assert_eq!(request(&[-1, 3, 48, -1], 48, 7), Ok((vec![1, 3, 48, 7], 3, true)));
        assert_eq!(request(&[-1, -1, 3], 5, 7), Ok((vec![5, 7, 3], 3, false)));
    }

    #[test]
    fn the_size_decides_where_a_shape_can_be_read_twice() {
        assert_eq!(request(&[-1, 3, 8, 3], 3, 8), Ok((vec![1, 3, 8, 3], 3, false)));
        assert_eq!(request(&[-1, 3, 8, 3], 8, 3), Ok((vec![1, 3, 8, 3], 3, true)));
    }

    #[test]
    fn a_wrong_size_is_refused_with_both_sizes() {
        let failure = request(&[-1, 1, 8, 8], 6, 9).unwrap_err();
        assert!(failure.messages()[0].contains("9 x 6") && failure.messages()[0].contains("8 x 8"), "{failure:?}");
        let open = request(&[-1, 3, 48, -1], 32, 10).unwrap_err();
        assert!(open.messages()[0].contains("takes any x 48"), "{open:?}");
    }

    #[test]
    fn an_input_that_is_no_image_is_refused() {
        for shape in [&[][..], &[-1], &[-1, 64], &[4, 1, 8, 8], &[-1, 2, 8, 8], &[1, 1, 1, 8, 8]] {
            let failure = request(shape, 8, 8).unwrap_err();
            assert!(failure.messages()[0].contains("does not look like one image"), "{failure:?}");
        }
    }

    proptest! {
        #[test]
        fn a_layout_that_is_found_has_room_for_the_image_and_fits_the_shape(
            shape in proptest::collection::vec(prop_oneof![Just(-1_i64), 0..5_i64, any::<i64>()], 0..6),
            height in 1..6_usize,
            width in 1..6_usize,
        ) {
            if let Ok(layout) = ImageLayout::find(&shape, height, width) {
                let dims = layout.request_shape(height, width);
                prop_assert_eq!(dims.iter().product::<usize>(), height * width * layout.channels);
                prop_assert_eq!(dims.len(), shape.len());
                for (dim, wanted) in dims.iter().zip(&shape) {
                    prop_assert!(*wanted == -1 || *wanted == *dim as i64, "{:?} for {:?}", dims, shape);
                }
            }
        }
    }
}
