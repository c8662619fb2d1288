//! The command, as a process that the tests can start, kill and read from.

fn main() {}
