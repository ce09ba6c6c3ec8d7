//! A node's attributes by name and type. What an operator does not ask for is refused at the end, with what it does know.

use std::cell::RefCell;

use crate::error::{LoadError, LoadResult, quoted};
use crate::onnx::{AttributeProto, GraphProto, NodeProto, TensorProto, attribute_type};

/// The attributes of one node.
pub(crate) struct Attributes<'a> {
    all: &'a [AttributeProto],
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Attributes<'a> {
    /// Those of `node`. Fails for duplicates and references to a function's attributes.
    pub fn new(node: &'a NodeProto) -> LoadResult<Attributes<'a>> {
        let mut names: Vec<&str> = node.attribute.iter().map(|attribute| &*attribute.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LoadError::malformed(format!("attribute {} is given twice", quoted(pair[0]))));
        }
        if let Some(attribute) = node.attribute.iter().find(|attribute| !attribute.ref_attr_name.is_empty()) {
            let name = quoted(&attribute.name);
            return Err(LoadError::unsupported(format!(
                "attribute {name} refers to a function's attribute, outside a function"
            )));
        }
        Ok(Attributes { all: &node.attribute, asked: RefCell::default() })
    }

    /// Refuses what has not been asked for.
    pub fn finish(&self) -> LoadResult<()> {
        let asked = self.asked.borrow();
        match self.all.iter().find(|attribute| !asked.contains(&&*attribute.name)) {
            None => Ok(()),
            Some(attribute) => {
                let known: Vec<String> = asked.iter().map(|name| quoted(name)).collect();
                let known = if known.is_empty() { "there are none".into() } else { known.join(", ") };
                let name = quoted(&attribute.name);
                Err(LoadError::unsupported(format!(
                    "attribute {name} is not supported; of this operator in this opset: {known}"
                )))
            }
        }
    }

    /// An integer.
    pub fn int(&self, name: &'static str) -> LoadResult<Option<i64>> {
        Ok(self.typed(name, attribute_type::INT, "an integer")?.map(|attribute| attribute.i))
    }

    /// An integer that is 0 or 1, as a truth value; `default` if it is not there.
    pub fn flag(&self, name: &'static str, default: bool) -> LoadResult<bool> {
        match self.int(name)? {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(LoadError::malformed(format!("attribute `{name}` is {other}, expected 0 or 1"))),
        }
    }

    /// A float.
    pub fn float(&self, name: &'static str) -> LoadResult<Option<f32>> {
        Ok(self.typed(name, attribute_type::FLOAT, "a float")?.map(|attribute| attribute.f))
    }

    /// A text.
    pub fn text(&self, name: &'static str) -> LoadResult<Option<&'a str>> {
        let Some(attribute) = self.typed(name, attribute_type::STRING, "a string")? else { return Ok(None) };
        match std::str::from_utf8(&attribute.s) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(LoadError::malformed(format!("attribute `{name}` is not text"))),
        }
    }

    /// Integers.
    pub fn ints(&self, name: &'static str) -> LoadResult<Option<&'a [i64]>> {
        Ok(self.typed(name, attribute_type::INTS, "a list of integers")?.map(|attribute| &*attribute.ints))
    }

    /// Floats.
    pub fn floats(&self, name: &'static str) -> LoadResult<Option<&'a [f32]>> {
        Ok(self.typed(name, attribute_type::FLOATS, "a list of floats")?.map(|attribute| &*attribute.floats))
    }

    /// Texts.
    pub fn texts(&self, name: &'static str) -> LoadResult<Option<Vec<&'a str>>> {
        let Some(attribute) = self.typed(name, attribute_type::STRINGS, "a list of strings")? else { return Ok(None) };
        let texts: Result<Vec<&str>, _> = attribute.strings.iter().map(|text| std::str::from_utf8(text)).collect();
        texts.map(Some).map_err(|_| LoadError::malformed(format!("attribute `{name}` is not text")))
    }

    /// A graph.
    pub fn graph(&self, name: &'static str) -> LoadResult<&'a GraphProto> {
        match self.typed(name, attribute_type::GRAPH, "a graph")? {
            Some(AttributeProto { g: Some(graph), .. }) => Ok(graph),
            _ => Err(LoadError::malformed(format!("attribute `{name}` is missing"))),
        }
    }

    /// A tensor.
    pub fn tensor(&self, name: &'static str) -> LoadResult<Option<&'a TensorProto>> {
        match self.typed(name, attribute_type::TENSOR, "a tensor")? {
            None => Ok(None),
            Some(AttributeProto { t: Some(tensor), .. }) => Ok(Some(tensor)),
            Some(_) => Err(LoadError::malformed(format!("attribute `{name}` has no tensor"))),
        }
    }

    fn find(&self, name: &'static str) -> Option<&'a AttributeProto> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&name) {
            asked.push(name);
        }
        self.all.iter().find(|attribute| attribute.name == name)
    }

    /// Files of the first versions leave the type out (0).
    fn typed(&self, name: &'static str, expected: i32, what: &str) -> LoadResult<Option<&'a AttributeProto>> {
        match self.find(name) {
            Some(attribute) if attribute.r#type != expected && attribute.r#type != 0 => {
                Err(LoadError::malformed(format!("attribute `{name}` has type {}, expected {what}", attribute.r#type)))
            }
            found => Ok(found),
        }
    }
}
