//! Tables of events and formulas. Event names are the kernel's (tools/perf/pmu-events). The formulas follow the
//! definitions that each table names.

use super::{LostCyclesSource, ProcessorFormulas};

/// Processors with a known stack.
pub const PROCESSORS: [ProcessorFormulas; 3] = [INTEL_ICELAKE, AMD_ZEN4, ARM_NEOVERSE_V1];

/// Ice Lake has five slots a cycle. The hardware splits the slots into four parts (PERF_METRICS), with a resolution of
/// 1/255. The front end's latency is split by the cycles of its stalls, the back end by the cycles without execution.
const INTEL_ICELAKE: ProcessorFormulas = ProcessorFormulas {
    name: "intel-icelake",
    about: "Intel Ice Lake and Ice Lake server: top-down levels 1 to 3, by the definitions of Intel's TMA metrics \
            (intel/perfmon; in Linux arch/x86/icelakex/icx-metrics.json)",
    cycles: "cycles",
    instructions: "instructions",
    together: &[
        "slots",
        "topdown-retiring",
        "topdown-fe-bound",
        "topdown-bad-spec",
        "topdown-be-bound",
    ],
    definitions: &[
        ("recovery", "5 * int_misc.clears_count / slots"),
        ("dropping", "int_misc.uop_dropping / slots"),
        ("retiring", r"topdown\-retiring / slots"),
        ("frontend", r"topdown\-fe\-bound / slots - dropping"),
        ("backend", r"topdown\-be\-bound / slots + recovery"),
        ("speculation", r"topdown\-bad\-spec / slots + dropping - recovery"),
        (
            "latency",
            "min(frontend, 5 * idq_uops_not_delivered.cycles_0_uops_deliv.core / slots - dropping)",
        ),
        (
            "latency_cycles",
            "icache_16b.ifdata_stall + icache_64b.iftag_stall + int_misc.clear_resteer_cycles \
             + dsb2mite_switches.penalty_cycles + ild_stall.lcp",
        ),
        ("resteers", "latency * d_ratio(int_misc.clear_resteer_cycles, latency_cycles)"),
        ("icache", "latency * d_ratio(icache_16b.ifdata_stall, latency_cycles)"),
        ("itlb", "latency * d_ratio(icache_64b.iftag_stall, latency_cycles)"),
        (
            "mispredicted",
            "d_ratio(br_misp_retired.all_branches, br_misp_retired.all_branches + machine_clears.count)",
        ),
        ("memory_cycles", "cycle_activity.stalls_mem_any + exe_activity.bound_on_stores"),
        (
            "memory",
            "backend * min(1, d_ratio(memory_cycles, cycle_activity.stalls_total + exe_activity.1_ports_util \
             + retiring * exe_activity.2_ports_util + exe_activity.bound_on_stores))",
        ),
        ("miss_cycles", "min(cycle_activity.stalls_l1d_miss, cycle_activity.stalls_mem_any)"),
        // A first-level TLB miss that the second level has costs 7 cycles.
        (
            "dtlb_cycles",
            "min(7 * dtlb_load_misses.stlb_hit + dtlb_load_misses.walk_active, \
             cycle_activity.stalls_mem_any - miss_cycles)",
        ),
        ("core", "backend - memory"),
        ("divider", "min(core, arith.divider_active / cycles)"),
    ],
    completion: "retiring",
    parts: &[
        (LostCyclesSource::InstructionCache, "icache"),
        (LostCyclesSource::BranchMisprediction, "(speculation + resteers) * mispredicted"),
        (LostCyclesSource::DataCache, "memory * d_ratio(miss_cycles, memory_cycles)"),
        (LostCyclesSource::Translation, "itlb + memory * d_ratio(dtlb_cycles, memory_cycles)"),
        (
            LostCyclesSource::LoadStore,
            "memory * (1 - d_ratio(miss_cycles + dtlb_cycles, memory_cycles))",
        ),
        (LostCyclesSource::Rejects, "(speculation + resteers) * (1 - mispredicted)"),
        (LostCyclesSource::FloatingPoint, "divider"),
        (LostCyclesSource::Integer, "core - divider"),
        (LostCyclesSource::Other, "frontend - icache - itlb - resteers"),
    ],
    within: &[],
};

/// Six slots a cycle; what did not dispatch is counted by why. What did and what did not are different counters.
const AMD_ZEN4: ProcessorFormulas = ProcessorFormulas {
    name: "amd-zen4",
    about: "AMD Zen 4: pipeline utilization, by the definitions of AMD's processor programming reference (in Linux \
            arch/x86/amdzen4/pipeline.json)",
    cycles: "ls_not_halted_cyc",
    instructions: "ex_ret_instr",
    together: &[],
    definitions: &[
        ("slots", "6 * ls_not_halted_cyc"),
        ("frontend", "de_no_dispatch_per_slot.no_ops_from_frontend / slots"),
        ("latency", r"6 * cpu@de_no_dispatch_per_slot.no_ops_from_frontend\,cmask\=0x6@ / slots"),
        ("speculation", "(de_src_op_disp.all - ex_ret_ops) / slots"),
        ("mispredicted", "d_ratio(ex_ret_brn_misp, ex_ret_brn_misp + resyncs_or_nc_redirects)"),
        ("backend", "de_no_dispatch_per_slot.backend_stalls / slots"),
        ("memory", "backend * d_ratio(ex_no_retire.load_not_complete, ex_no_retire.not_complete)"),
    ],
    completion: "ex_ret_ops / slots",
    parts: &[
        (LostCyclesSource::InstructionCache, "latency"),
        (LostCyclesSource::BranchMisprediction, "speculation * mispredicted"),
        (LostCyclesSource::DataCache, "memory"),
        (LostCyclesSource::Rejects, "speculation * (1 - mispredicted)"),
        (LostCyclesSource::Integer, "backend - memory"),
        (
            LostCyclesSource::Other,
            "frontend - latency + de_no_dispatch_per_slot.smt_contention / slots",
        ),
    ],
    within: &[
        (LostCyclesSource::Translation, "within data cache, and within instruction cache"),
        (LostCyclesSource::LoadStore, "within data cache, and within integer"),
        (LostCyclesSource::FloatingPoint, "within integer"),
    ],
};

/// Eight slots a cycle. A mispredicted branch empties four cycles of the front end, which are not the front end's.
const ARM_NEOVERSE_V1: ProcessorFormulas = ProcessorFormulas {
    name: "arm-neoverse-v1",
    about: "Arm Neoverse V1: top-down level 1, by the definitions of Arm's telemetry specification (in Linux \
            arch/arm64/arm/neoverse-v1/metrics.json)",
    cycles: "cpu_cycles",
    instructions: "inst_retired",
    together: &[],
    definitions: &[
        ("used", "1 - stall_slot / (8 * cpu_cycles)"),
        ("refilling", "4 * br_mis_pred / cpu_cycles"),
        ("frontend", "stall_slot_frontend / (8 * cpu_cycles) - refilling"),
        ("backend", "stall_slot_backend / (8 * cpu_cycles)"),
        // In these cycles all slots were empty; the rest is bandwidth.
        ("latency", "frontend * min(1, d_ratio(8 * stall_frontend, stall_slot_frontend))"),
        ("memory", "backend * min(1, d_ratio(stall_backend_mem, stall_backend))"),
    ],
    completion: "op_retired / op_spec * used",
    parts: &[
        (LostCyclesSource::InstructionCache, "latency"),
        (LostCyclesSource::BranchMisprediction, "(1 - op_retired / op_spec) * used + refilling"),
        (LostCyclesSource::DataCache, "memory"),
        (LostCyclesSource::Integer, "backend - memory"),
        (LostCyclesSource::Other, "frontend - latency"),
    ],
    within: &[
        (LostCyclesSource::Translation, "within instruction cache, and within integer"),
        (LostCyclesSource::LoadStore, "within integer"),
        (LostCyclesSource::Rejects, "within branch misprediction"),
        (LostCyclesSource::FloatingPoint, "within integer"),
    ],
};
