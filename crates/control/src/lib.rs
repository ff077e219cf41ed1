//! Pure, clockless controllers for batching journal commits.
