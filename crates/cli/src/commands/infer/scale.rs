//! What an image's darkest and lightest values stand for: `MIN:MAX`. Only numbers; the image tensor applies it.

use std::fmt;
use std::str::FromStr;

/// The values of the darkest and the lightest pixel. Both are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    darkest: f64,
    lightest: f64,
}

impl Scale {
    /// 0 to 1, as most networks with real inputs want it.
    pub const UNIT: Scale = Scale { darkest: 0.0, lightest: 1.0 };

    /// 0 to 255, as bytes of an image are.
    pub const BYTE: Scale = Scale { darkest: 0.0, lightest: 255.0 };

    /// The value of a sample of `of_max`, the largest there can be.
    pub fn value(self, sample: u16, of_max: u16) -> f64 {
        let share = f64::from(sample) / f64::from(of_max.max(1));
        self.darkest + share * (self.lightest - self.darkest)
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 1e30);
        let ends = text.split_once(':').and_then(|(darkest, lightest)| Some((number(darkest)?, number(lightest)?)));
        let (darkest, lightest) = ends.ok_or("expected two numbers, such as 0:1, 0:255 or -1:1")?;
        if darkest == lightest {
            return Err("the two numbers are the same: every pixel would have one value".to_owned());
        }
        Ok(Scale { darkest, lightest })
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.darkest, self.lightest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_exact_and_the_middle_is_in_between() {
        let scale: Scale = "-1:1".parse().unwrap();
        assert_eq!((scale.value(0, 255), scale.value(255, 255), scale.value(65_535, 65_535)), (-1.0, 1.0, 1.0));
        assert_eq!("0:16".parse::<Scale>().unwrap().value(51, 255), 3.2);
    }

    #[test]
    fn a_scale_may_be_upside_down() {
        assert_eq!("1:0".parse::<Scale>().unwrap().value(255, 255), 0.0);
    }

    #[test]
    fn what_is_not_two_numbers_is_refused() {
        for text in ["", "1", ":", "0:", ":1", "0:1:2", "a:b", "0:inf", "nan:1", "0:1e300", "2:2"] {
            assert!(text.parse::<Scale>().is_err(), "{text}");
        }
    }
}
