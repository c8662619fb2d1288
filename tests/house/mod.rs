//! Tests about the project's own text: its rooms, its rules, its specification.

mod examples;
mod rooms;
mod rules;
mod source;
mod spec;
