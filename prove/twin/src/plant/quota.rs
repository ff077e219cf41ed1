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

/// Range of the quota, percent of one processor.
const QUOTA_PERCENT: [u64; 2] = [2, 6];
/// Period of the quota, us: the kernel's default.
const PERIOD_US: u64 = 100_000;
/// File of a cgroup v2.
const FILE: &str = "cpu.max";
/// Files of a cgroup v1.
const OLD_FILES: [&str; 2] = ["cpu.cfs_period_us", "cpu.cfs_quota_us"];

pub(super) fn draw(
    spec: &Spec,
    random: &mut ChaCha8Rng,
    searches: u64,
    cgroup: Option<&Path>,
) -> Result<Switched, TwinError> {
    let window = Window::draw(random, searches);
    let drawn = random.random_range(QUOTA_PERCENT[0]..=QUOTA_PERCENT[1]);
    let percent = spec.number()?.unwrap_or(drawn);
    let cgroup = cgroup.ok_or_else(|| spec.wrong("--cgroup must say which cgroup this is"))?;
    let cgroup = cgroup.to_owned();
    Switched::spawn("quota", Span::new(Kind::Quota, percent), move |progress, span| {
        progress.wait_for(window.from);
        span.begin();
        set(&cgroup, Some(PERIOD_US * percent / 100))?;
        progress.wait_for(window.to);
        set(&cgroup, None)?;
        span.end();
        Ok(())
    })
}

/// Sets a cgroup's quota of processor time in each period, us; `None` removes the limit.
fn set(cgroup: &Path, quota_us: Option<u64>) -> Result<(), TwinError> {
    let write = |file: &str, value: &str| {
        let file = cgroup.join(file);
        fs::write(&file, value).map_err(TwinError::file(&file))
    };
    if cgroup.join(FILE).exists() {
        let quota = quota_us.map_or("max".to_owned(), |quota_us| quota_us.to_string());
        return write(FILE, &format!("{quota} {PERIOD_US}"));
    }
    let [period, quota] = OLD_FILES;
    write(period, &PERIOD_US.to_string())?;
    write(quota, &quota_us.map_or("-1".to_owned(), |quota_us| quota_us.to_string()))
}
