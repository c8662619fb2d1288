//! Every test that crosses a crate's border: what the house asks of the code, and what the store promises its callers.

mod backup;
#[path = "../fuzz/src/checks/mod.rs"]
mod checks;
mod command;
mod compaction;
mod corpus;
mod damage;
mod distance_oracle;
mod durability;
mod edges;
mod eval;
mod filters;
mod flips;
mod full;
mod golden;
mod history;
mod hostile;
mod house;
mod kill;
mod languages;
mod limits;
mod metamorphic;
mod overlay;
mod pack;
mod power;
mod processes;
mod regressions;
mod repair;
mod retrieval;
mod salvage;
mod store;
mod stores;
mod terms_oracle;
mod untrusted;
mod verify;
mod wordpiece;
