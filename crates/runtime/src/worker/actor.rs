//! A worker as an actor on its pinned loop: it pulls a batch when it is free, runs it, settles it, and parks when there is
//! nothing. A thin shell: what a batch does stands in `batch`, who is next in the shard.

use std::sync::Arc;

use actix::{Actor, AsyncContext, Context, WrapFuture};
use insula_memory::{CpuBacking, Scratch};

use crate::faults::FaultPoint;
use crate::supervision::DownNotice;
use crate::worker::WorkerBuilder;
use crate::worker::turn::WorkerTurn;

/// Batches run one after another before the loop looks at its mailbox.
const BATCHES_A_TURN: usize = 16;

/// The actor of one worker.
#[derive(Debug)]
pub struct WorkerActor {
    parts: Arc<WorkerBuilder>,
    _notice: DownNotice,
}

impl WorkerActor {
    /// A worker made of `parts`.
    pub fn new(parts: Arc<WorkerBuilder>, notice: DownNotice) -> WorkerActor {
        WorkerActor { parts, _notice: notice }
    }
}

impl Actor for WorkerActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.parts.settle_on_its_processors();
        context.spawn(pull(self.parts.clone()).into_actor(self));
    }
}

/// The worker's life: batches as long as there are any, then sleep until a pusher or a stop wakes it.
async fn pull(parts: Arc<WorkerBuilder>) {
    let backing = Arc::new(CpuBacking::new());
    let arena = match Scratch::new(backing, &parts.services().budget, parts.node()) {
        Ok(arena) => arena,
        Err(error) => {
            tracing::error!(worker = parts.name(), ?error, "a worker has no arena and does not run");
            return;
        }
    };
    let mut turn = WorkerTurn::new(parts.clone(), arena);
    loop {
        parts.services().faults.hit(FaultPoint::Worker);
        let worked = (0..BATCHES_A_TURN).take_while(|_| turn.run_one()).count();
        if worked == 0 {
            if parts.stopping() {
                return;
            }
            turn.sleep();
        }
        tokio::task::yield_now().await;
    }
}
