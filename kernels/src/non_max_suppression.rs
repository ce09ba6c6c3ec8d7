//! Picks boxes by score and drops those that overlap a better one. It allocates, for models use it on constants alone, while
//! they are loaded.

/// How boxes are picked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonMaxSuppression {
    /// The most boxes of a class in an image.
    pub most: usize,
    /// A box is dropped when its overlap, intersection over union, with one already picked is larger.
    pub iou_threshold: f32,
    /// Boxes are candidates only with a larger score; all are, when there is none.
    pub score_threshold: Option<f32>,
    /// Whether boxes are x, y of the centre, width and height, instead of y1, x1, y2, x2 of two opposite corners.
    pub center_point: bool,
}

/// A box by its corners: y1, x1, y2, x2, the smaller first.
type Corners = [f32; 4];

impl NonMaxSuppression {
    /// The picked boxes as (image, class, box), image by image, class by class, best first. `boxes` is `[images, count, 4]`, `scores`
    /// `[images, classes, count]`.
    ///
    /// # Panics
    ///
    /// When the parts do not fit together: a defect of the caller.
    pub fn run(&self, images: usize, classes: usize, count: usize, boxes: &[f32], scores: &[f32]) -> Vec<[usize; 3]> {
        assert!(boxes.len() == images * count * 4 && scores.len() == images * classes * count, "boxes without scores");
        let mut picked = Vec::new();
        for image in 0..images {
            let corners: Vec<Corners> = boxes[image * count * 4..(image + 1) * count * 4]
                .chunks_exact(4)
                .map(|values| self.corners(values))
                .collect();
            for class in 0..classes {
                let scores = &scores[(image * classes + class) * count..][..count];
                picked.extend(self.pick(&corners, scores).into_iter().map(|index| [image, class, index]));
            }
        }
        picked
    }

    fn corners(&self, values: &[f32]) -> Corners {
        let [a, b, c, d] = [values[0], values[1], values[2], values[3]];
        match self.center_point {
            true => [b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0],
            false => [a.min(c), b.min(d), a.max(c), b.max(d)],
        }
    }

    fn pick(&self, corners: &[Corners], scores: &[f32]) -> Vec<usize> {
        let candidate = |index: &usize| self.score_threshold.is_none_or(|threshold| scores[*index] > threshold);
        let mut candidates: Vec<usize> = (0..scores.len()).filter(candidate).collect();
        candidates.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let mut picked: Vec<usize> = Vec::new();
        for index in candidates {
            if picked.len() >= self.most {
                break;
            }
            let overlaps = |other: &usize| overlap(&corners[index], &corners[*other]) > self.iou_threshold;
            if !picked.iter().any(overlaps) {
                picked.push(index);
            }
        }
        picked
    }
}

/// Intersection over union.
fn overlap(a: &Corners, b: &Corners) -> f32 {
    let area = |corners: &Corners| (corners[2] - corners[0]) * (corners[3] - corners[1]);
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let union = area(a) + area(b) - height * width;
    if union > 0.0 { height * width / union } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOXES: [f32; 16] = [0.0, 0.0, 1.0, 1.0, 1.0, 1.1, 0.0, 0.1, 0.0, 10.0, 1.0, 11.0, 0.0, 10.1, 1.0, 11.1];

    fn suppression() -> NonMaxSuppression {
        NonMaxSuppression { most: 3, iou_threshold: 0.5, score_threshold: Some(0.0), center_point: false }
    }

    #[test]
    fn the_best_of_overlapping_boxes_stays() {
        let picked = suppression().run(1, 2, 4, &BOXES, &[0.9, 0.75, 0.6, 0.95, 0.1, 0.2, -1.0, 0.0]);
        assert_eq!(picked, [[0, 0, 3], [0, 0, 0], [0, 1, 1]]);
        let few = NonMaxSuppression { most: 1, ..suppression() };
        assert_eq!(few.run(1, 1, 4, &BOXES, &[0.9, 0.75, 0.6, 0.95]), [[0, 0, 3]]);
    }

    #[test]
    fn boxes_may_be_given_by_their_centres() {
        let boxes = [0.5, 0.5, 1.0, 1.0, 0.5, 0.6, 1.0, 1.0, 0.5, 10.5, 1.0, 1.0];
        let centred = NonMaxSuppression { center_point: true, ..suppression() };
        assert_eq!(centred.run(1, 1, 3, &boxes, &[0.9, 0.95, 0.3]), [[0, 0, 1], [0, 0, 2]]);
    }
}
