//! System tests. All files are modules of one binary; `docs/ARCHITECTURE.md` lists the question of each.

mod book;
mod cascade;
mod cases;
mod dependencies;
mod dmv;
mod memory;
mod methods;
mod product;
mod schemas;
mod segment;
mod test_corpus;
mod train;
mod treebank;

mod deaths;
mod first_process;
mod fleet;
mod object_store;
mod order;
mod prose;
mod report;
mod resume;
mod soak;

mod floods;
mod identity;
mod job_processes;
mod kills;
mod launch;
mod liars;

mod annotate;
mod load;
mod page;
mod plan;
mod probes;
mod service;
mod watch;
mod withdrawal;
