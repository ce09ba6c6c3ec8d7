//! Whole models beside onnxruntime: the same files, inputs and number of threads, in turns, so that a slow wave of the host hits
//! both. Prepare a folder with `benches/model_peer.py prepare DIR`, then run it with
//! `INSULA_BENCH_MODELS=DIR cargo bench -p insula-benches --bench models [-- NAME...]`.
#![allow(clippy::print_stdout, reason = "a benchmark's result")]

mod case;
mod engine;
mod layers;
mod peer;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use insula_benches::rounds::Rounds;
use insula_exec::CpuDevice;

use case::Case;
use engine::Engine;
use peer::Peer;

/// Turns of each side.
const ROUNDS: usize = 7;

/// How long a turn lasts at least.
const TURN: Duration = Duration::from_millis(400);

/// Compute threads of each side.
const THREADS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::var_os("INSULA_BENCH_MODELS").map(PathBuf::from) else {
        println!(
            "skipped: INSULA_BENCH_MODELS names no folder; make one with `python3 benches/model_peer.py prepare DIR`"
        );
        return Ok(());
    };
    let names: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let device = CpuDevice::with_threads(THREADS, &[])?;
    let mut peer = Peer::start(&folder, THREADS)?;
    println!("| model and input | onnxruntime, ms | insula, ms | onnxruntime / insula |\n|---|---|---|---|");
    let mut slowest = String::new();
    for case in Case::read_all(&folder)? {
        if !names.is_empty() && !names.iter().any(|name| case.label.starts_with(name)) {
            continue;
        }
        match Engine::load(&device, &folder, &case) {
            Ok(mut engine) => {
                compare(&case, &mut engine, &mut peer)?;
                slowest += &layers::slowest(&case.label, &mut engine)?;
            }
            Err(reason) => println!("| {} | | not run: {reason} | |", case.label),
        }
    }
    println!("\n{slowest}");
    Ok(())
}

/// Prints the line of one case.
fn compare(case: &Case, engine: &mut Engine, peer: &mut Peer) -> Result<(), Box<dyn Error>> {
    peer.load(&case.label)?;
    let (mut theirs, mut ours, mut ratios) = (Rounds::default(), Rounds::default(), Rounds::default());
    peer.turn(TURN / 4)?;
    engine.turn(TURN / 4)?;
    for round in 0..ROUNDS {
        // Who is first changes, so that neither always follows the other.
        let (their, our) = if round % 2 == 0 {
            let their = peer.turn(TURN)?;
            (their, engine.turn(TURN)?)
        } else {
            let our = engine.turn(TURN)?;
            (peer.turn(TURN)?, our)
        };
        theirs.add(their);
        ours.add(our);
        ratios.add(their / our);
    }
    println!("| {} | {theirs:.2} | {ours:.2} | {ratios:.2} |", case.label);
    Ok(())
}
