//! A back end whose cgroup may use the processors only for a share of the time.

use std::fs;
use std::path::Path;

use luc_twin_truth::Kind;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::progress::Window;
use super::span::Span;
use super::switched::Switched;
use crate::error::TwinError;
use crate::spec::Spec;

/// Percent of one processor, from and to.
const DRAWN: [u64; 2] = [2, 6];
/// The period of a quota, us: the kernel's own default.
const PERIOD_US: u64 = 100_000;
const FILE: &str = "cpu.max";

pub(super) fn draw(
    spec: &Spec,
    random: &mut ChaCha8Rng,
    searches: u64,
    cgroup: Option<&Path>,
) -> Result<Switched, TwinError> {
    let window = Window::draw(random, searches);
    let drawn = random.random_range(DRAWN[0]..=DRAWN[1]);
    let percent = spec.number()?.unwrap_or(drawn);
    let cgroup = cgroup.ok_or_else(|| spec.wrong("--cgroup must say which cgroup this is"))?;
    let file = cgroup.join(FILE);
    Switched::spawn(
        "quota",
        Span::new(Kind::Quota, percent),
        move |progress, span| {
            let set = |value: &str| fs::write(&file, value).map_err(TwinError::file(&file));
            progress.wait_for(window.from);
            span.begin();
            set(&format!("{} {PERIOD_US}", PERIOD_US * percent / 100))?;
            progress.wait_for(window.to);
            set("max")?;
            span.end();
            Ok(())
        },
    )
}
