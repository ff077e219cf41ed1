//! Runs that are boots of guests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use luc_vm::GuestTime;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::templates::{Templates, Variables, words};
use crate::error::EvaluateError;
use crate::guests::{Guests, succeed, warnings};
use crate::harness::Harness;

/// A guest with `lagdisk.ko`, `luc.ko` and `luc`, and its script. Texts are templates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct GuestRun {
    /// Version of its kernel.
    kernel: String,
    /// File of the script, whose status must be 0.
    script: String,
    /// Programs and the kernel's modules beside those of every guest, as words.
    #[serde(default)]
    programs: String,
    #[serde(default)]
    modules: String,
    /// Words for the kernel.
    #[serde(default)]
    arguments: String,
    /// Variables of the script.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Whether a processor makes an instruction in each nanosecond of its time.
    #[serde(default)]
    virtual_time: bool,
    memory_mib: Option<u32>,
    timeout_s: u64,
}

/// Kernels with their modules, by version.
pub(super) type Kernels = RefCell<BTreeMap<String, Guests>>;

impl GuestRun {
    /// Boots the guest. Returns what its figures are found in, and a line that describes it.
    pub(super) fn boot(
        &self,
        harness: &Harness,
        kernels: &Kernels,
        templates: &Templates,
        with: &Variables,
    ) -> Result<(Variables, String), EvaluateError> {
        let fill = |text: &str| templates.fill(text, with);
        let version = fill(&self.kernel)?;
        let known = kernels.borrow().contains_key(&version);
        if !known {
            let prepared = Guests::prepare(harness, &version)?;
            kernels.borrow_mut().insert(version.clone(), prepared);
        }
        let kernels = kernels.borrow();
        let guests = &kernels[&version];
        let path = fill(&self.script)?;
        let script = fs::read(&path).map_err(EvaluateError::file("read", &path))?;
        let mut vm = guests.machine(Duration::from_secs(self.timeout_s)).script(script);
        if let Some(memory_mib) = self.memory_mib {
            vm = vm.memory_mib(memory_mib);
        }
        if self.virtual_time {
            vm = vm.mode(GuestTime::VirtualTime { shift: 0, processors: 1 });
        }
        vm = words(&fill(&self.programs)?).iter().fold(vm, |vm, program| vm.program(program));
        vm = words(&fill(&self.modules)?).iter().fold(vm, |vm, module| vm.module(module));
        vm = words(&fill(&self.arguments)?).iter().fold(vm, |vm, word| vm.kernel_argument(word));
        let mut line = format!("guest {}: {path}", guests.release());
        for (name, text) in &self.variables {
            let value = fill(text)?;
            line += &format!(" {name}='{value}'");
            vm = vm.variable(name, &value);
        }
        let outcome = succeed(&vm, &line)?;
        let files = outcome.files.iter().map(|(name, bytes)| {
            (name.clone(), Value::from(String::from_utf8_lossy(bytes).into_owned()))
        });
        let complaints: Vec<Value> =
            outcome.complaints().into_iter().map(|line| Value::from(line.to_owned())).collect();
        let found = [
            ("text", Value::from(outcome.text())),
            ("files", Value::Object(files.collect())),
            ("warnings", Value::from(warnings(&outcome))),
            ("complaints", Value::from(complaints)),
            ("release", Value::from(guests.release())),
            ("wall_s", Value::from(outcome.wall.as_secs())),
        ];
        Ok((
            found.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
            line,
        ))
    }
}
