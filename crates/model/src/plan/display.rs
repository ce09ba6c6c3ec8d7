//! A plan as text, one line a step, for people and logs.

use std::fmt;

use crate::plan::{Binding, LogicalPlan, Operand, Source};

impl fmt::Display for LogicalPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rows, {} steps, arena {} bytes", self.rows, self.steps.len(), self.arena_bytes)?;
        for step in &self.steps {
            let buffer = &self.buffers[step.output.index()];
            write!(f, "b{} {}{} = {}(", step.output.0, buffer.dtype, buffer.shape, step.op.name())?;
            for (index, operand) in step.inputs.iter().enumerate() {
                write!(f, "{}", if index == 0 { "" } else { ", " })?;
                write_operand(f, operand)?;
            }
            f.write_str(")")?;
            if let Some(bias) = step.epilogue.bias {
                write!(f, " + c{}", bias.0)?;
            }
            if let Some(residual) = &step.epilogue.residual {
                f.write_str(" + ")?;
                write_operand(f, residual)?;
            }
            if let Some(activation) = step.epilogue.activation {
                write!(f, ", {activation:?}")?;
            }
            writeln!(f, "  @{}+{}  `{}`", buffer.offset, buffer.bytes, step.name)?;
        }
        for (index, output) in self.outputs.iter().enumerate() {
            let binding = match output.binding {
                Binding::Buffer(buffer) => format!("b{}", buffer.0),
                Binding::Input(input) => format!("input{input}"),
                Binding::Constant(constant) => format!("c{}", constant.0),
            };
            writeln!(f, "output{index} {}{} = {binding}", output.dtype, output.shape)?;
        }
        Ok(())
    }
}

fn write_operand(f: &mut fmt::Formatter<'_>, operand: &Operand) -> fmt::Result {
    match operand.source {
        Source::Input(input) => write!(f, "input{input}{}", operand.shape),
        Source::Buffer(buffer) => write!(f, "b{}{}", buffer.0, operand.shape),
        Source::Constant(constant) => write!(f, "c{}{}", constant.0, operand.shape),
    }
}
