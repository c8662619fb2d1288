//! Models behind a URL, against a server that misbehaves: what is tried again, what is told, and that nothing is lost.

mod calls;
mod commands;
mod facts;
mod interface;
mod reports;
mod servers;
mod stub;
