//! System tests. All files are modules of one binary; `docs/ARCHITECTURE.md` lists the question of each.

mod dependencies;
mod dmv;
mod methods;
mod product;
mod test_corpus;
mod train;
mod treebank;

mod deaths;
mod fleet;
mod object_store;
mod order;
mod resume;
mod soak;

mod identity;
mod job_processes;

mod load;
mod page;
mod plan;
mod probes;
mod service;
mod watch;
