//! The index of the node tests: which cases there are, what their files hold, and which are out of scope. Parsing only; the
//! files themselves are read when a case runs.

use std::path::{Path, PathBuf};

/// All cases of a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Tests {
    /// Where they lie.
    pub folder: PathBuf,
    /// The version of the `onnx` package that made them.
    pub onnx: String,
    /// The cases, by name.
    pub cases: Vec<Case>,
}

/// One node test.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name, which is its folder's.
    pub name: String,
    /// Whether it is in scope.
    pub scope: Scope,
}

/// Whether a case is in scope.
#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    /// It is run.
    In {
        /// How far outputs may be off.
        tolerance: Tolerance,
        /// The operators in its model, sorted.
        operators: Vec<String>,
        /// Its inputs, in the model's order.
        inputs: Vec<Declared>,
        /// The outputs that are expected, in the model's order.
        outputs: Vec<Declared>,
    },
    /// It is not run: the category.
    Out(String),
}

/// How far floats may be off: `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of the expected value.
    pub relative: f64,
    /// In itself.
    pub absolute: f64,
}

/// A tensor as the index declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name in the model.
    pub name: String,
    /// The protocol's name of its type, or ONNX's where the protocol has none.
    pub dtype: String,
    /// Its dimensions.
    pub dims: Vec<usize>,
    /// The file of its bytes, in the case's folder.
    pub file: String,
}

impl Tests {
    /// Reads `folder/index.txt`.
    pub fn read(folder: &Path) -> Result<Tests, String> {
        let path = folder.join("index.txt");
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("{} could not be read: {error}", path.display()))?;
        Tests::parse(folder, &text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(folder: &Path, text: &str) -> Result<Tests, String> {
        let mut tests = Tests { folder: folder.to_path_buf(), onnx: String::new(), cases: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            tests.parse_line(line).map_err(|error| format!("line {}, `{line}`: {error}", number + 1))?;
        }
        match tests.onnx.is_empty() {
            true => Err("it does not say which version of onnx made the cases".to_string()),
            false => Ok(tests),
        }
    }

    fn parse_line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "onnx" => self.onnx = rest.to_string(),
            "case" => self.cases.push(Case { name: rest.to_string(), scope: Scope::empty() }),
            _ => {
                let case = self.cases.last_mut().ok_or("it stands before the first case")?;
                case.scope.parse_line(word, rest)?;
            }
        }
        Ok(())
    }
}

impl Scope {
    fn empty() -> Scope {
        let tolerance = Tolerance { relative: 0.0, absolute: 0.0 };
        Scope::In { tolerance, operators: Vec::new(), inputs: Vec::new(), outputs: Vec::new() }
    }

    fn parse_line(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let Scope::In { tolerance, operators, inputs, outputs } = self else {
            return Err("the case is out of scope".to_string());
        };
        match word {
            "excluded" => *self = Scope::Out(rest.to_string()),
            "tolerance" => *tolerance = parse_tolerance(rest)?,
            "operators" => *operators = rest.split(' ').map(str::to_string).collect(),
            "input" => inputs.push(parse_declared(rest)?),
            "output" => outputs.push(parse_declared(rest)?),
            _ => return Err(format!("`{word}` is not known")),
        }
        Ok(())
    }
}

fn parse_tolerance(text: &str) -> Result<Tolerance, String> {
    let numbers: Result<Vec<f64>, _> = text.split(' ').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([relative, absolute]) => Ok(Tolerance { relative: *relative, absolute: *absolute }),
        _ => Err("expected a relative and an absolute tolerance".to_string()),
    }
}

fn parse_declared(text: &str) -> Result<Declared, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let [name, dtype, dims, file] = words[..] else {
        return Err("expected a name, a type, [dimensions] and a file".to_string());
    };
    let listed = dims.strip_prefix('[').and_then(|dims| dims.strip_suffix(']'));
    let listed = listed.ok_or_else(|| format!("expected [dimensions], found `{dims}`"))?;
    let dims = listed.split(',').filter(|dim| !dim.is_empty()).map(str::parse).collect::<Result<_, _>>();
    let dims = dims.map_err(|error| format!("a dimension of [{listed}] is wrong: {error}"))?;
    Ok(Declared { name: name.to_string(), dtype: dtype.to_string(), dims, file: file.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "onnx 1.23.2\ncase test_add\ntolerance 0.001 1e-07\noperators Add Mul\n\
        input x FP32 [3,4] input_0.bin\noutput y FLOAT4E2M1 [] output_0.bin\ncase test_scan\nexcluded Scan\n";

    #[test]
    fn an_index_gives_its_cases() {
        let tests = Tests::parse(Path::new("cases"), INDEX).unwrap();
        assert_eq!(tests.onnx, "1.23.2");
        let declared = |name: &str, dtype: &str, dims: &[usize], file: &str| Declared {
            name: name.into(),
            dtype: dtype.into(),
            dims: dims.to_vec(),
            file: file.into(),
        };
        let add = Scope::In {
            tolerance: Tolerance { relative: 1e-3, absolute: 1e-7 },
            operators: vec!["Add".into(), "Mul".into()],
            inputs: vec![declared("x", "FP32", &[3, 4], "input_0.bin")],
            outputs: vec![declared("y", "FLOAT4E2M1", &[], "output_0.bin")],
        };
        assert_eq!(tests.cases[0], Case { name: "test_add".into(), scope: add });
        assert_eq!(tests.cases[1], Case { name: "test_scan".into(), scope: Scope::Out("Scan".into()) });
    }

    #[test]
    fn a_broken_line_is_named() {
        for (broken, said) in [
            ("onnx 1\ninput x FP32 [1] f", "line 2, `input x FP32 [1] f`: it stands before"),
            ("onnx 1\ncase a\ninput x FP32 1 f", "expected [dimensions], found `1`"),
            ("onnx 1\ncase a\ninput x FP32 [-1] f", "a dimension of [-1]"),
            ("onnx 1\ncase a\ntolerance 1", "expected a relative and an absolute"),
            ("onnx 1\ncase a\nexcluded map\ninput x FP32 [1] f", "out of scope"),
            ("case a", "which version of onnx"),
        ] {
            let error = Tests::parse(Path::new("cases"), broken).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
