//! The command line of `luc-differential`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};

use crate::compare::DifferenceKind;
use crate::fuzz::{FuzzOptions, POLICIES};
use crate::lane::Way;
use crate::program::Program;

#[derive(Debug)]
pub(crate) struct Arguments {
    file: Option<String>,
    seconds: u64,
    count: u64,
    seed: u64,
    lie: u32,
    batch: u64,
    width: u32,
    keep: usize,
    shrink: u64,
    pub(crate) ways: Vec<Way>,
    pub(crate) policy: Option<&'static str>,
    pub(crate) times: u32,
    pub(crate) kind: Option<DifferenceKind>,
    pub(crate) json: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let mut arguments = Self {
            file: None,
            seconds: 60,
            count: u64::MAX,
            seed: now.as_micros() as u64,
            lie: 0,
            batch: 1024,
            width: 192,
            keep: 3,
            shrink: 60,
            ways: vec![Way::Library, Way::Notify, Way::Attach],
            policy: None,
            times: 5,
            kind: None,
            json: None,
        };
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                arguments.file = Some(word);
                continue;
            };
            let value = words.next().with_context(|| format!("--{name} needs a value"))?;
            let number = || value.parse::<u64>().with_context(|| format!("--{name} {value}"));
            match name {
                "seconds" => arguments.seconds = number()?,
                "count" => arguments.count = number()?,
                "seed" => arguments.seed = number()?,
                "lie" => arguments.lie = number()? as u32,
                "batch" => arguments.batch = number()?,
                "width" => arguments.width = number()? as u32,
                "keep" => arguments.keep = number()? as usize,
                "shrink" => arguments.shrink = number()?,
                "times" => arguments.times = number()? as u32,
                "json" => arguments.json = Some(value.into()),
                "policy" => {
                    let known = POLICIES.iter().find(|known| **known == value);
                    let known =
                        known.with_context(|| format!("a policy is one of {POLICIES:?}"))?;
                    arguments.policy = Some(known);
                }
                "ways" if value == "none" => arguments.ways = Vec::new(),
                "ways" => {
                    arguments.ways = value.split(',').map(parse_way).collect::<Result<_>>()?
                }
                "kind" => arguments.kind = Some(serde_json::from_value(value.into())?),
                _ => bail!("there is no --{name}"),
            }
        }
        Ok(arguments)
    }

    pub(crate) fn seed_of_file(&self) -> Result<u64> {
        let text = self.file.as_deref().context("which SEED?")?;
        text.parse().with_context(|| text.to_owned())
    }

    pub(crate) fn program(&self) -> Result<Program> {
        let path = self.file.as_deref().context("which FILE or SEED?")?;
        if let Ok(seed) = path.parse() {
            return Ok(crate::generate::program(seed));
        }
        let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
        text.parse().with_context(|| path.to_owned())
    }

    pub(crate) fn options(&self) -> FuzzOptions {
        FuzzOptions {
            seed: self.seed,
            time: Duration::from_secs(self.seconds),
            count: self.count,
            batch: self.batch,
            width: self.width,
            ways: self.ways.clone(),
            policy: self.policy,
            lie: self.lie,
            keep: self.keep,
            shrink: Duration::from_secs(self.shrink),
        }
    }
}

fn parse_way(text: &str) -> Result<Way> {
    match text {
        "library" => Ok(Way::Library),
        "notify" => Ok(Way::Notify),
        "attach" => Ok(Way::Attach),
        _ => bail!("ways are library, notify and attach, not {text}"),
    }
}
