//! The kernel's names of events.

use luc_counters::{CountMode, HardwareEvent, cycle_stack};
use perf_event::Builder;
use perf_event::events::{
    Cache, CacheId, CacheOp, CacheResult, Dynamic, DynamicBuilder, Hardware, Raw, Software,
};

/// An event as the kernel opens it.
#[derive(Clone, Debug)]
pub(super) enum KernelEvent {
    Hardware(Hardware),
    Software(Software),
    Cache(Cache),
    Raw(Raw),
    /// An event of a PMU in `/sys/bus/event_source/devices`.
    OfPmu(Dynamic),
    /// A hardware event, while no processor counts.
    Absent,
}

/// Events that each processor has, or lacks, under these names.
const HARDWARE: [(&str, Hardware); 14] = [
    ("cycles", Hardware::CPU_CYCLES),
    ("cpu-cycles", Hardware::CPU_CYCLES),
    ("instructions", Hardware::INSTRUCTIONS),
    ("cache-references", Hardware::CACHE_REFERENCES),
    ("cache-misses", Hardware::CACHE_MISSES),
    ("branches", Hardware::BRANCH_INSTRUCTIONS),
    ("branch-instructions", Hardware::BRANCH_INSTRUCTIONS),
    ("branch-misses", Hardware::BRANCH_MISSES),
    ("bus-cycles", Hardware::BUS_CYCLES),
    ("stalled-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    ("idle-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
    ("idle-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
    ("ref-cycles", Hardware::REF_CPU_CYCLES),
];

/// Events of the kernel's own.
const SOFTWARE: [(&str, Software); 12] = [
    ("cpu-clock", Software::CPU_CLOCK),
    ("task-clock", Software::TASK_CLOCK),
    ("page-faults", Software::PAGE_FAULTS),
    ("faults", Software::PAGE_FAULTS),
    ("minor-faults", Software::PAGE_FAULTS_MIN),
    ("major-faults", Software::PAGE_FAULTS_MAJ),
    ("context-switches", Software::CONTEXT_SWITCHES),
    ("cs", Software::CONTEXT_SWITCHES),
    ("cpu-migrations", Software::CPU_MIGRATIONS),
    ("migrations", Software::CPU_MIGRATIONS),
    ("alignment-faults", Software::ALIGNMENT_FAULTS),
    ("emulation-faults", Software::EMULATION_FAULTS),
];

const CACHES: [(&str, CacheId); 7] = [
    ("l1-dcache-", CacheId::L1D),
    ("l1-icache-", CacheId::L1I),
    ("llc-", CacheId::LL),
    ("dtlb-", CacheId::DTLB),
    ("itlb-", CacheId::ITLB),
    ("branch-", CacheId::BPU),
    ("node-", CacheId::NODE),
];

const CACHE_CALLS: [(&str, CacheOp, CacheResult); 6] = [
    ("loads", CacheOp::READ, CacheResult::ACCESS),
    ("load-misses", CacheOp::READ, CacheResult::MISS),
    ("stores", CacheOp::WRITE, CacheResult::ACCESS),
    ("store-misses", CacheOp::WRITE, CacheResult::MISS),
    ("prefetches", CacheOp::PREFETCH, CacheResult::ACCESS),
    ("prefetch-misses", CacheOp::PREFETCH, CacheResult::MISS),
];

/// The PMU whose events need no prefix.
const PROCESSOR: &str = "cpu";

impl KernelEvent {
    /// Finds the event of this name; its mode does not matter.
    ///
    /// # Errors
    /// When there is none: a text that says so.
    pub(super) fn of(event: &HardwareEvent) -> Result<Self, String> {
        let name = event.name.as_str();
        let known = |found: &&str| **found == *name;
        if let Some((_, kind)) = HARDWARE.iter().find(|(of, _)| known(of)) {
            return Ok(Self::Hardware(*kind));
        }
        if let Some((_, kind)) = SOFTWARE.iter().find(|(of, _)| known(of)) {
            return Ok(Self::Software(*kind));
        }
        if let Some(cache) = cache(name) {
            return Ok(Self::Cache(cache));
        }
        if let Some(code) = name.strip_prefix('r')
            && let Ok(config) = u64::from_str_radix(code, 16)
        {
            return Ok(Self::Raw(Raw::new(config)));
        }
        let (pmu, terms) = match name.strip_suffix('/').and_then(|own| own.split_once('/')) {
            Some((pmu, terms)) => (pmu, terms),
            None => (PROCESSOR, name),
        };
        match of_pmu(pmu, terms) {
            Ok(event) => Ok(Self::OfPmu(event)),
            Err(_) if is_of_some_processor(name) && !has_pmu(PROCESSOR) => Ok(Self::Absent),
            Err(why) => Err(format!("no event `{name}`: {why}")),
        }
    }

    /// Returns whether the processor counts it.
    pub(super) fn is_hardware(&self) -> bool {
        !matches!(self, Self::Software(_) | Self::OfPmu(_))
    }

    /// Returns the builder of its counter on a processor, for all threads in this mode; `None` if it cannot be opened.
    pub(super) fn builder(&self, mode: CountMode, processor: usize) -> Option<Builder<'static>> {
        let mut builder = match self {
            Self::Hardware(kind) => Builder::new(*kind),
            Self::Software(kind) => Builder::new(*kind),
            Self::Cache(cache) => Builder::new(cache.clone()),
            Self::Raw(raw) => Builder::new(*raw),
            Self::OfPmu(event) => Builder::new(*event),
            Self::Absent => return None,
        };
        builder
            .any_pid()
            .one_cpu(processor)
            .include_hv()
            .exclude_kernel(mode == CountMode::User)
            .exclude_user(mode == CountMode::Kernel)
            .enabled(true);
        Some(builder)
    }
}

fn has_pmu(name: &str) -> bool {
    std::path::Path::new("/sys/bus/event_source/devices").join(name).exists()
}

/// Returns whether the stack of a known processor has an event of this name.
fn is_of_some_processor(name: &str) -> bool {
    cycle_stack::PROCESSORS
        .iter()
        .filter_map(|processor| processor.events().ok())
        .any(|events| events.iter().any(|event| event == name))
}

/// `CACHE-loads` and the like.
fn cache(name: &str) -> Option<Cache> {
    CACHES.iter().find_map(|&(prefix, which)| {
        let call = name.strip_prefix(prefix)?;
        let (_, operation, result) = CACHE_CALLS.iter().find(|(of, ..)| *of == call)?;
        Some(Cache { which, operation: *operation, result: *result })
    })
}

/// An event of a PMU, by its names and fields: `event=0x3c,umask=0x1`, `slots`.
fn of_pmu(pmu: &str, terms: &str) -> Result<Dynamic, String> {
    let plain = |text: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !text.starts_with('.') && !text.is_empty() && text.chars().all(letter)
    };
    if !plain(pmu) {
        return Err(format!("`{pmu}` is no PMU"));
    }
    let mut builder = DynamicBuilder::new(pmu)
        .map_err(|error| format!("PMU {pmu} cannot be read ({})", reason(&error)))?;
    for term in terms.split(',') {
        let (field, value) = match term.split_once('=') {
            Some((field, value)) => (field, Some(value)),
            None => (term, None),
        };
        if !plain(field) {
            return Err(format!("`{term}` is no term"));
        }
        let Some(value) = value else {
            builder
                .event(field)
                .map_err(|error| format!("PMU {pmu} has no `{field}` ({})", reason(&error)))?;
            continue;
        };
        let value = number(value).ok_or_else(|| format!("`{value}` is no number"))?;
        builder.field(field, value).map_err(|error| format!("PMU {pmu}, `{term}`: {error}"))?;
    }
    // Fields that are not named are 0, as perf has it.
    let unset: Vec<String> = builder.params().map(str::to_owned).collect();
    for field in unset {
        builder.field(&field, 0).map_err(|error| format!("PMU {pmu}, `{field}`: {error}"))?;
    }
    builder.build().map_err(|error| error.to_string())
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<KernelEvent, String> {
        KernelEvent::of(&HardwareEvent::of_perf(text))
    }

    #[test]
    fn caches_and_raw_codes_have_names() {
        let Ok(KernelEvent::Cache(cache)) = named("L1-dcache-load-misses:u") else {
            panic!("a cache");
        };
        assert_eq!(cache.which, CacheId::L1D);
        assert_eq!(cache.result, CacheResult::MISS);
        assert!(matches!(named("dTLB-stores"), Ok(KernelEvent::Cache(_))));
        let Ok(KernelEvent::Raw(raw)) = named("r01C2:k") else {
            panic!("a code");
        };
        assert_eq!(raw.config, 0x1c2);
        assert!(matches!(named("faults"), Ok(KernelEvent::Software(_))));
        assert!(!named("faults").expect("known").is_hardware());
    }

    #[test]
    fn what_is_no_name_of_a_pmu_reads_no_file() {
        for text in ["../cpu/slots/", "cpu/../../type/", ".hidden/a/", "msr/tsc=/"] {
            let why = named(text).unwrap_err();
            assert!(why.contains("is no") || why.contains("cannot be read"), "{text}: {why}");
        }
    }

    #[test]
    fn an_event_of_a_pmu_is_found_by_its_name() {
        if !std::path::Path::new("/sys/bus/event_source/devices/msr/events/tsc").exists() {
            luc_testkit::skipped!("no PMU msr here");
            return;
        }
        assert!(matches!(named("msr/tsc/"), Ok(KernelEvent::OfPmu(_))));
        assert!(matches!(named("msr/event=0x00/"), Ok(KernelEvent::OfPmu(_))));
        let why = named("msr/no-such-event/").unwrap_err();
        assert!(why.contains("PMU msr has no `no-such-event`"), "{why}");
        let why = named("msr/event=x/").unwrap_err();
        assert!(why.contains("`x` is no number"), "{why}");
    }
}
