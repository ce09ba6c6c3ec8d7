#[path = "../tests/model/interpreter.rs"]
mod interpreter;
use interpreter::*;
use insula_model::*;
fn read(p: &std::path::Path) -> Vec<f64> { std::fs::read(p).unwrap().chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect() }
fn main() {
    let mut ok = 0; let mut refused = std::collections::BTreeMap::<String, Vec<String>>::new();
    let root = std::env::args().nth(1).unwrap();
    let mut dirs: Vec<_> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect(); dirs.sort();
    for d in dirs {
        let name = d.file_name().unwrap().to_string_lossy().into_owned();
        let b = std::fs::read(d.join("model.onnx")).unwrap();
        match Model::load(b.into(), &NoExternalData, &LoadOptions::new(&Folder)) {
            Err(e) => { let m: String = e.message().chars().skip_while(|c| *c != ':').take(140).collect(); refused.entry(m).or_default().push(name); }
            Ok(m) => {
                let rows = if m.signature().batched { std::fs::read_to_string(d.join("rows")).unwrap().trim().parse().unwrap() } else { 1 };
                let plan = m.logical_plan(rows).unwrap();
                let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let inputs: Vec<Tensor> = plan.inputs.iter().enumerate().map(|(i, inp)| Tensor::new(inp.shape.dims(), read(&d.join(format!("in_{i}.f64"))))).collect();
                let outs = run(&plan, m.constants(), &inputs);
                let mut bad = String::new();
                for (i, o) in outs.iter().enumerate() {
                    let e = read(&d.join(format!("out_{i}.f64")));
                    if e.len() != o.data.len() { bad = format!("output {i} has {} elements, expected {}", o.data.len(), e.len()); continue; }
                    for (a, b) in o.data.iter().zip(&e) { if !((a - b).abs() <= 1e-4 + 1e-3 * b.abs() || (a.is_nan() && b.is_nan())) { bad = format!("{a} vs {b}"); } }
                }
                bad }));
                match r { Ok(b) if b.is_empty() => ok += 1, Ok(b) => println!("WRONG {name}: {b}\n{plan}"), Err(_) => println!("PANIC {name}\n{plan}") }
            }
        }
    }
    println!("{ok} right");
    for (m, n) in refused { println!("refused {m} <- {}", n.join(" ")); }
}
