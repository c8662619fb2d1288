//! The fuzz targets' checks, and how inputs that have a structure are mutated.

pub mod checks;
pub mod mutate;
