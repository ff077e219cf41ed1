//! The reports of `luc faults` as text.

use luc_powercut::faults::{CommandReport, FaultsReport};

/// Number of differences that are printed; JSON has all.
const MAX_SHOWN: usize = 20;

/// Prints what the trials came to.
pub(super) fn of_trials(report: &FaultsReport) {
    let early = if report.interrupted { " (interrupted)" } else { "" };
    println!(
        "{} trials{early} on {}, Linux {}: {} requests failed, {} differences",
        report.trials,
        report.fs,
        report.kernel,
        report.failed_requests,
        report.differences.len()
    );
    println!(
        "{:<16} {:>7} {:>9} {:>11} {:>12}",
        "POLICY", "TRIALS", "FAILED", "HELD", "DIFFERENCES"
    );
    for row in &report.policies {
        println!(
            "{:<16} {:>7} {:>9} {:>11} {:>12}{}",
            row.policy.as_deref().unwrap_or("(without luc)"),
            row.trials,
            row.failed_requests,
            row.held_calls.map_or_else(|| "-".to_owned(), |calls| calls.to_string()),
            row.differences,
            row.engaged_clients.map_or_else(String::new, |engaged| format!(
                "  engaged at the end of {engaged} of {} clients",
                row.clients
            ))
        );
    }
    let changed: Vec<String> = report
        .reported
        .iter()
        .filter(|(answered, told)| answered != told)
        .map(|(answered, told)| format!("{answered} as {told}"))
        .collect();
    if !changed.is_empty() {
        println!("the kernel itself reports {}", changed.join(", "));
    }
    if report.untold_without_gate > 0 {
        println!("the kernel itself reports nothing in {} trials", report.untold_without_gate);
    }
    for difference in report.differences.iter().take(MAX_SHOWN) {
        println!("{difference}");
    }
    let more = report.differences.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        println!("and {more} more: --json has them");
    }
}

pub(super) fn of_command(report: &CommandReport) {
    println!("'{}': {}", report.command, report.fault);
    for run in &report.runs {
        let who = run
            .policy
            .as_ref()
            .map_or_else(|| "without luc".to_owned(), |policy| format!("policy {policy}"));
        let said = if run.said.is_empty() { String::new() } else { format!(": {}", run.said) };
        println!(
            "{who}: {} of {} requests failed, exit status {}{said}",
            run.failed_requests, run.matched_requests, run.status
        );
    }
    println!(
        "{}",
        if report.is_clean() {
            "it ends the same with luc as without"
        } else {
            "it ends otherwise with luc"
        }
    );
}
