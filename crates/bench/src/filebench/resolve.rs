//! From commands to a plan: looks up variables and references, and refuses what is not implemented.

use std::collections::HashMap;

use super::ast::{Action, Attribute, Attributes, Command, Mode, Setting, Thread, Value};
use super::mistake::{Mistake, Position};
use super::plan::{Access, Files, Flowop, Plan, Task};
use super::variables::{Distribution, Drawn, Number};

/// Clients that a run may have.
const MOST_CLIENTS: u64 = 4096;
/// Entries that all filesets may have together.
const MOST_ENTRIES: u64 = 1 << 26;

/// The plan of a file's commands; `given` are variables whose value the user has set.
pub(super) fn resolve(commands: &[Command], given: &[(String, Value)]) -> Result<Plan, Mistake> {
    let start = Position { line: 1, column: 1 };
    let mut scope = Scope(HashMap::new());
    for command in commands {
        if let Action::Set(name, setting) = &command.action {
            scope.set(command.at, name, setting)?;
        }
        for (name, value) in given {
            scope.0.insert(name.clone(), Bound::Plain(value.clone()));
        }
        if matches!(command.action, Action::Run(_)) {
            break;
        }
    }
    let mut plan = Plan {
        filesets: Vec::new(),
        clients: Vec::new(),
        loops: Vec::new(),
        names: Vec::new(),
        seconds: None,
    };
    for command in commands {
        if let Action::Files(alone, attributes) = &command.action {
            plan.filesets.push(scope.files(*alone, attributes)?);
        }
    }
    for command in commands {
        match &command.action {
            Action::Process(attributes, threads) => {
                scope.process(&mut plan, attributes, threads)?
            }
            Action::Run(seconds) => {
                plan.seconds = seconds
                    .as_ref()
                    .map(|value| scope.integer(command.at, value))
                    .transpose()?;
                break;
            }
            Action::Events(attributes) => {
                if let Some(rate) = attributes.get("rate")
                    && scope.integer(rate.at, &rate.value)? > 0
                {
                    return Err(missing(
                        rate.at,
                        "eventgen with a rate above 0",
                        "set rate=0",
                    ));
                }
            }
            Action::Mode(Mode::AllDone | Mode::FirstDone) => {
                let advice = "use 'set mode quit timeout'";
                return Err(missing(command.at, "an end by what threads do", advice));
            }
            Action::Composite(..) => {
                let advice = "write its flowops where they are used";
                return Err(missing(command.at, "define flowop", advice));
            }
            Action::System(_) => {
                let advice = "run the command before luc bench and remove this line";
                return Err(missing(command.at, "system", advice));
            }
            Action::Multi => {
                return Err(missing(
                    command.at,
                    "a run on several hosts",
                    "remove this line",
                ));
            }
            Action::Sleep(_) => return Err(missing(command.at, "sleep", "use run or --seconds")),
            _ => {}
        }
    }
    let entries = plan
        .filesets
        .iter()
        .fold(0_u64, |sum, files| sum.saturating_add(files.entries));
    if entries > MOST_ENTRIES {
        let advice = format!("use at most {MOST_ENTRIES}");
        return Err(Mistake::new(
            start,
            format!("{entries} files are too many"),
            advice,
        ));
    }
    if plan.clients.is_empty() {
        return Err(Mistake::new(
            start,
            "this file defines no process",
            "add define process {...}",
        ));
    }
    Ok(plan)
}

fn missing(at: Position, what: &str, advice: &str) -> Mistake {
    Mistake::new(at, format!("{what} is not implemented yet"), advice)
}

#[derive(Debug, Clone)]
enum Bound {
    Plain(Value),
    Number(Number),
}

struct Scope(HashMap<String, Bound>);

impl Scope {
    fn set(&mut self, at: Position, name: &str, setting: &Setting) -> Result<(), Mistake> {
        let bound = match setting {
            Setting::Random(attributes) => Bound::Number(self.random(attributes)?),
            Setting::Custom(attributes) => Bound::Number(self.custom(attributes)?),
            Setting::Product(factors) => match &factors[..] {
                [one] => self.look_up(at, one)?,
                many => {
                    let product = many.iter().try_fold(1_u64, |product, factor| {
                        let factor = self.integer(at, factor)?;
                        product.checked_mul(factor).ok_or_else(|| {
                            Mistake::new(at, "the product is too large", "use less than 16 EiB")
                        })
                    })?;
                    Bound::Plain(Value::Integer(product))
                }
            },
        };
        self.0.insert(name.to_owned(), bound);
        Ok(())
    }

    fn look_up(&self, at: Position, value: &Value) -> Result<Bound, Mistake> {
        let Value::Variable(name) = value else {
            return Ok(Bound::Plain(value.clone()));
        };
        self.0.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            Mistake::unknown(at, "variable", name, &known)
        })
    }

    fn number(&self, at: Position, value: &Value) -> Result<Number, Mistake> {
        match self.look_up(at, value)? {
            Bound::Number(number) => Ok(number),
            Bound::Plain(Value::Integer(number)) => Ok(Number::Fixed(number)),
            Bound::Plain(_) => Err(Mistake::new(
                at,
                "this value is no number",
                "write a number or a $variable",
            )),
        }
    }

    fn integer(&self, at: Position, value: &Value) -> Result<u64, Mistake> {
        match self.number(at, value)? {
            Number::Fixed(number) => Ok(number),
            Number::Drawn(_) => Err(Mistake::new(
                at,
                "a random value cannot stand here",
                "write a number",
            )),
        }
    }

    fn integer_or(
        &self,
        attributes: &Attributes,
        name: &str,
        default: u64,
    ) -> Result<u64, Mistake> {
        attributes
            .get(name)
            .map_or(Ok(default), |found| self.integer(found.at, &found.value))
    }

    fn number_or(
        &self,
        attributes: &Attributes,
        name: &str,
        default: u64,
    ) -> Result<Number, Mistake> {
        attributes
            .get(name)
            .map_or(Ok(Number::Fixed(default)), |found| {
                self.number(found.at, &found.value)
            })
    }

    fn boolean(&self, attributes: &Attributes, name: &str) -> Result<bool, Mistake> {
        let Some(found) = attributes.get(name) else {
            return Ok(false);
        };
        match self.look_up(found.at, &found.value)? {
            Bound::Plain(Value::Boolean(value)) => Ok(value),
            _ => Err(Mistake::new(
                found.at,
                format!("'{name}' is neither true nor false"),
                "write one of them",
            )),
        }
    }

    fn text(&self, found: &Attribute) -> Result<String, Mistake> {
        match self.look_up(found.at, &found.value)? {
            Bound::Plain(Value::Text(text)) => Ok(text),
            Bound::Plain(Value::Integer(number)) => Ok(number.to_string()),
            _ => Err(Mistake::new(
                found.at,
                format!("'{}' is no text", found.name),
                "write a name",
            )),
        }
    }

    fn required(&self, attributes: &Attributes, name: &str) -> Result<String, Mistake> {
        let found = attributes.get(name).ok_or_else(|| {
            Mistake::new(
                attributes.at,
                format!("'{name}' is missing"),
                format!("add {name}=..."),
            )
        })?;
        self.text(found)
    }

    fn random(&self, attributes: &Attributes) -> Result<Number, Mistake> {
        let least = self.integer_or(attributes, "min", 0)? as f64;
        let mean = attributes
            .get("mean")
            .map(|found| self.integer(found.at, &found.value))
            .transpose()?
            .map(|mean| mean as f64);
        let shape = self.integer_or(attributes, "gamma", 1500)?.max(1) as f64 / 1000.0;
        let kind = attributes
            .get("type")
            .map_or(Ok("gamma".to_owned()), |found| self.text(found))?;
        let shape = match kind.as_str() {
            "uniform" => Distribution::Uniform {
                low: least,
                high: (2.0 * mean.unwrap_or(least) - least).max(least),
            },
            "gamma" => Distribution::Gamma {
                least,
                mean: mean.map_or(shape, |mean| (mean - least).max(0.0)),
                shape,
            },
            "tabular" => table(attributes, least, mean)?,
            other => {
                let known = ["uniform", "gamma", "tabular"];
                return Err(Mistake::unknown(attributes.at, "type", other, &known));
            }
        };
        self.drawn(attributes, shape)
    }

    fn drawn(&self, attributes: &Attributes, shape: Distribution) -> Result<Number, Mistake> {
        let most = attributes
            .get("max")
            .map(|found| self.integer(found.at, &found.value))
            .transpose()?;
        Ok(Number::Drawn(Box::new(Drawn {
            shape,
            least: self.integer_or(attributes, "min", 0)? as f64,
            most: most.map_or(f64::MAX, |most| most as f64),
            round: self.integer_or(attributes, "round", 0)?,
        })))
    }

    fn custom(&self, attributes: &Attributes) -> Result<Number, Mistake> {
        let kind = self.required(attributes, "type")?;
        let at = attributes
            .get("parameters")
            .map_or(attributes.at, |found| found.at);
        let text = attributes
            .get("parameters")
            .map_or(Ok(String::new()), |found| self.text(found))?;
        let mut parameters = HashMap::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let pair = part.split_once(':');
            let pair = pair.and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
            let Some((name, value)) = pair.filter(|(_, value)| value.is_finite()) else {
                return Err(Mistake::new(
                    at,
                    format!("'{part}' is no parameter"),
                    "write name:number",
                ));
            };
            parameters.insert(name, value);
        }
        let get = |name: &str, default: f64| parameters.get(name).copied().unwrap_or(default);
        let (shape, known): (_, &[&str]) = match kind.as_str() {
            "cvar-gamma" => {
                let (mean, shape) = (get("mean", 4096.0), get("gamma", 1.5).max(1e-3));
                (
                    Distribution::Gamma {
                        least: 0.0,
                        mean,
                        shape,
                    },
                    &["mean", "gamma"],
                )
            }
            "cvar-uniform" => {
                let (low, high) = (get("lower", 0.0), get("upper", 1.0));
                (Distribution::Uniform { low, high }, &["lower", "upper"])
            }
            "cvar-normal" => {
                let (mean, sigma) = (get("mean", 0.0), get("sigma", 1.0));
                (Distribution::Normal { mean, sigma }, &["mean", "sigma"])
            }
            "cvar-exponential" => (
                Distribution::Exponential {
                    mean: get("mean", 1.0),
                },
                &["mean"],
            ),
            "cvar-erlang" => {
                let (shape, rate) = (get("shape", 1.0).max(1.0), get("rate", 1.0));
                let mean = shape / rate;
                (
                    Distribution::Gamma {
                        least: 0.0,
                        mean,
                        shape,
                    },
                    &["shape", "rate"],
                )
            }
            "cvar-lognormal" => {
                let (shape, scale) = (get("shape", 1.0), get("scale", 1.0));
                (
                    Distribution::LogNormal { shape, scale },
                    &["shape", "scale"],
                )
            }
            "cvar-weibull" => {
                let (shape, scale) = (get("shape", 1.0), get("scale", 1.0));
                (Distribution::Weibull { shape, scale }, &["shape", "scale"])
            }
            "cvar-triangular" => {
                let (low, high, mode) = (get("lower", 0.0), get("upper", 1.0), get("mode", 0.5));
                (
                    Distribution::Triangular { low, high, mode },
                    &["lower", "upper", "mode"],
                )
            }
            other => {
                let known = [
                    "cvar-gamma",
                    "cvar-uniform",
                    "cvar-normal",
                    "cvar-exponential",
                    "cvar-erlang",
                    "cvar-lognormal",
                    "cvar-weibull",
                    "cvar-triangular",
                ];
                return Err(Mistake::unknown(attributes.at, "type", other, &known));
            }
        };
        if let Some(name) = parameters.keys().find(|name| !known.contains(name)) {
            return Err(Mistake::unknown(at, "parameter", name, known));
        }
        self.drawn(attributes, shape)
    }

    fn files(&self, alone: bool, attributes: &Attributes) -> Result<Files, Mistake> {
        self.required(attributes, "path")?;
        for name in ["leafdirs", "dirdepthrv"] {
            if let Some(found) = attributes.get(name) {
                return Err(missing(found.at, name, "remove it"));
            }
        }
        let name = self.required(attributes, "name")?;
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(Mistake::new(
                attributes.at,
                format!("'{name}' is no file name"),
                "write a plain name",
            ));
        }
        let prealloc = match attributes.get("prealloc") {
            None => 0,
            Some(found) => match self.look_up(found.at, &found.value)? {
                Bound::Plain(Value::Boolean(all)) => 100 * u64::from(all),
                _ => self.integer(found.at, &found.value)?.min(100),
            },
        };
        let size = ["size", "filesize"]
            .into_iter()
            .find_map(|name| attributes.get(name));
        let access = match (
            self.boolean(attributes, "readonly")?,
            self.boolean(attributes, "writeonly")?,
        ) {
            (true, _) => Access::Read,
            (_, true) => Access::Write,
            _ => Access::Both,
        };
        Ok(Files {
            name,
            entries: if alone {
                1
            } else {
                self.integer_or(attributes, "entries", 0)?
            },
            size: size.map_or(Ok(Number::Fixed(1024)), |size| {
                self.number(size.at, &size.value)
            })?,
            prealloc,
            dirwidth: self
                .integer_or(attributes, "dirwidth", if alone { 10 } else { 1 })?
                .max(1),
            dirgamma: self.integer_or(attributes, "dirgamma", if alone { 0 } else { 1500 })?,
            alone,
            access,
        })
    }

    fn process(
        &self,
        plan: &mut Plan,
        attributes: &Attributes,
        threads: &[Thread],
    ) -> Result<(), Mistake> {
        if let Some(nice) = attributes.get("nice") {
            return Err(missing(
                nice.at,
                "nice",
                "remove it and start luc with nice(1)",
            ));
        }
        let processes = self.integer_or(attributes, "instances", 1)?;
        for thread in threads {
            if let Some(priority) = thread.attributes.get("ioprio") {
                return Err(missing(
                    priority.at,
                    "ioprio",
                    "remove it and start luc with ionice(1)",
                ));
            }
            let instances = self
                .integer_or(&thread.attributes, "instances", 1)?
                .saturating_mul(processes);
            if instances.saturating_add(plan.clients.len() as u64) > MOST_CLIENTS {
                let advice = format!("use at most {MOST_CLIENTS}");
                return Err(Mistake::new(
                    thread.attributes.at,
                    "too many threads",
                    advice,
                ));
            }
            let mut flowops = Vec::new();
            for flowop in &thread.flowops {
                flowops.push(self.flowop(plan, flowop.at, &flowop.kind, &flowop.attributes)?);
            }
            plan.clients
                .extend((0..instances).map(|_| plan.loops.len()));
            plan.loops.push(flowops);
        }
        Ok(())
    }

    fn flowop(
        &self,
        plan: &mut Plan,
        at: Position,
        kind: &str,
        given: &Attributes,
    ) -> Result<Flowop, Mistake> {
        let task = task(at, kind)?;
        for name in ["indexed", "opennext", "target", "noreadahead"] {
            if let Some(found) = given.get(name) {
                return Err(missing(found.at, name, "remove it"));
            }
        }
        let name = self.required(given, "name")?;
        let files = ["filename", "filesetname"]
            .into_iter()
            .find_map(|name| given.get(name));
        let files = files
            .map(|found| {
                let wanted = self.text(found)?;
                plan.filesets
                    .iter()
                    .position(|files| files.name == wanted)
                    .ok_or_else(|| {
                        let known: Vec<&str> =
                            plan.filesets.iter().map(|files| &*files.name).collect();
                        Mistake::unknown(found.at, "file or fileset", &wanted, &known)
                    })
            })
            .transpose()?;
        let slot = |name: &str| match self.integer_or(given, name, 0)? {
            fd @ 0..=127 => Ok(fd as usize),
            fd => Err(Mistake::new(
                given.at,
                format!("{name}={fd} is out of range"),
                "use 0 to 127",
            )),
        };
        let needs_files = matches!(task, Task::Open | Task::Create | Task::Delete | Task::Stat);
        if needs_files && files.is_none() {
            return Err(Mistake::new(
                given.at,
                format!("{kind} without a fileset"),
                "add filesetname=NAME",
            ));
        }
        let (fd, srcfd) = (slot("fd")?, slot("srcfd")?);
        let iosize = self.number_or(given, "iosize", 0)?;
        let sized = matches!(
            task,
            Task::Read | Task::Write | Task::Append | Task::AppendRandom
        );
        if sized && iosize.is(0) {
            return Err(Mistake::new(
                given.at,
                format!("{kind} without a size"),
                "add iosize=BYTES",
            ));
        }
        let operation = plan
            .names
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                plan.names.push(name);
                plan.names.len() - 1
            });
        Ok(Flowop {
            task,
            operation,
            files,
            fd,
            srcfd,
            iosize,
            iters: self.number_or(given, "iters", 1)?,
            value: self.number_or(given, "value", 0)?,
            workingset: self.integer_or(given, "workingset", 0)?,
            random: self.boolean(given, "random")?,
            direct: self.boolean(given, "directio")?,
            dsync: self.boolean(given, "dsync")?,
        })
    }
}

fn task(at: Position, kind: &str) -> Result<Task, Mistake> {
    Ok(match kind {
        "openfile" => Task::Open,
        "createfile" => Task::Create,
        "closefile" => Task::Close,
        "deletefile" => Task::Delete,
        "statfile" => Task::Stat,
        "fsync" => Task::Fsync,
        "read" => Task::Read,
        "write" => Task::Write,
        "readwholefile" => Task::ReadWhole,
        "writewholefile" => Task::WriteWhole,
        "appendfile" => Task::Append,
        "appendfilerand" => Task::AppendRandom,
        "delay" => Task::Delay,
        "hog" => Task::Hog,
        "eventlimit" | "opslimit" | "iopslimit" | "bwlimit" => Task::Free,
        other => {
            return Err(missing(
                at,
                &format!("flowop {other}"),
                "remove it, or use another flowop",
            ));
        }
    })
}

/// A table, scaled so that its lowest value becomes `least` and its mean `mean`.
fn table(attributes: &Attributes, least: f64, mean: Option<f64>) -> Result<Distribution, Mistake> {
    let bad = |what: &str| {
        Mistake::new(
            attributes.at,
            what,
            "write randtable={{percent,low,high},...}",
        )
    };
    let Some(Value::Table(rows)) = attributes.get("randtable").map(|found| &found.value) else {
        return Err(bad("a tabular variable without its table"));
    };
    let percent: u64 = rows
        .iter()
        .fold(0, |sum: u64, row| sum.saturating_add(row[0]));
    if percent != 100 || rows.iter().any(|row| row[1] > row[2]) {
        return Err(bad(
            "this table's percents are not 100 together, or a row's low is above its high",
        ));
    }
    let part = |row: &[u64; 3]| row[0] as f64 / 100.0 * (row[1] as f64 + row[2] as f64) / 2.0;
    let own: f64 = rows.iter().map(part).sum();
    let shift = rows.iter().map(|row| row[1]).min().unwrap_or(0) as f64;
    let scale = match mean {
        Some(mean) if own > shift => (mean - least).max(0.0) / (own - shift),
        _ => 1.0,
    };
    Ok(Distribution::Table {
        rows: rows.clone(),
        shift,
        scale,
        least,
    })
}
