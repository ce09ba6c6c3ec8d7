//! Where a model's time goes: its slowest steps, with the rate of those that multiply. It measures nothing but whole runs.

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use insula_benches::rounds::Rounds;
use insula_model::{LogicalPlan, Op, Step};

use crate::engine::Engine;

/// Runs whose median is taken.
const RUNS: usize = 9;

/// Steps that are shown.
const SHOWN: usize = 5;

/// The slowest steps of a case as lines of a list.
pub fn slowest(label: &str, engine: &mut Engine) -> Result<String, Box<dyn Error>> {
    let mut steps = vec![Rounds::default(); engine.logical.steps.len()];
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..RUNS {
        engine.run(Some(&mut times))?;
        for (step, time) in steps.iter_mut().zip(&times) {
            step.add(time.as_secs_f64() * 1e3);
        }
    }
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by(|a, b| steps[*b].median().total_cmp(&steps[*a].median()));
    let total: f64 = steps.iter().map(Rounds::median).sum();
    let mut text = format!("{label}: {total:.2} ms in {} steps\n", steps.len());
    let shown = std::env::var("INSULA_BENCH_STEPS").ok().and_then(|count| count.parse().ok()).unwrap_or(SHOWN);
    for index in order.into_iter().take(shown) {
        let (step, time) = (&engine.logical.steps[index], steps[index].median());
        let shape = &engine.logical.buffers[step.output.index()].shape;
        write!(text, "  {time:8.3} ms {:4.1}% {} `{}` {shape}", 100.0 * time / total, step.op.name(), step.name)?;
        match operations(&engine.logical, step) {
            Some(count) => writeln!(text, ", {:.1} GFLOP/s", count / time / 1e6)?,
            None => writeln!(text)?,
        }
    }
    Ok(text)
}

/// The multiplications and additions of a product or convolution.
fn operations(plan: &LogicalPlan, step: &Step) -> Option<f64> {
    let output = plan.buffers.get(step.output.index())?.shape.elements() as f64;
    let terms = match &step.op {
        Op::MatMul => *step.inputs.first()?.shape.dims().last()?,
        Op::Conv(_) => {
            let weight = &step.inputs.get(1)?.shape;
            weight.elements() / weight.dims().first()?
        }
        _ => return None,
    };
    Some(2.0 * output * terms as f64)
}
