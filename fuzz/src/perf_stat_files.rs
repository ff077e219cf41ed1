//! Files of `perf stat` made of any bytes.

use luc_counters::perf_stat_file::{self, PerfOutputFormat};
use luc_counters::cycle_stack::PROCESSORS;
use luc_counters::{FormulaDefinitions, CountEstimate, Formula, CountMode, CounterRecording, total};

/// Any text in place of what perf wrote: it is refused in one line, or all figures of it are figures. What is read can
/// be written and read again.
pub fn counters(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match perf_stat_file::parse(&text) {
        Ok(replay) => {
            look(&replay.recording);
            for style in [PerfOutputFormat::Csv, PerfOutputFormat::Json] {
                let again = perf_stat_file::write(&replay.recording, style);
                if let Ok(again) = perf_stat_file::parse(&again) {
                    look(&again.recording);
                }
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
    // A formula is one line.
    for line in text.lines().take(20) {
        match Formula::parse(line) {
            Ok(formula) => {
                let nothing = CounterRecording::default();
                let _ = formula.evaluate(&FormulaDefinitions::default(), &nothing, CountMode::Total);
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}

fn look(recording: &CounterRecording) {
    for event in 0..recording.events().len() {
        if let Ok(found) = total(recording, event) {
            check(&found);
        }
    }
    for processor in &PROCESSORS {
        for mode in CountMode::ALL {
            let stack = processor.stack(recording, mode).expect("its formulas can be read");
            stack.cpi.known().into_iter().for_each(check);
            stack.missing.known().into_iter().for_each(check);
        }
    }
}

fn check(found: &CountEstimate) {
    assert!(found.value.is_finite(), "{found:?}");
    assert!(found.half_width.is_none_or(|half_width| half_width >= 0.0), "{found:?}");
    assert!((0.0..=1.0).contains(&found.running_share), "{found:?}");
}
