//! `luc completions`: prints scripts by which shells complete luc's commands and options.

use std::io::{Write as _, stdout};
use std::process::ExitCode;

use clap::CommandFactory as _;
use luc_cli::Shell;

/// Completes units, disks, policies and luc-fleet's words, beside clap's `_luc`.
const NAMES: &str = include_str!("completions/names.bash");

/// Print a shell's completion script for luc
///
/// `make install` installs the scripts for bash, zsh and fish; use this command for other places. That for bash also
/// completes services, emulated disks, policies, and the words of luc fleet.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc completions bash > ~/.local/share/bash-completion/completions/luc
  luc completions zsh > ~/.zfunc/_luc        # a folder of your $fpath
  luc completions fish > ~/.config/fish/completions/luc.fish")]
pub(crate) struct Args {
    /// Shell that reads the script
    shell: Shell,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    stdout().write_all(&script(args.shell))?;
    Ok(ExitCode::SUCCESS)
}

/// clap's script, and for bash the part that completes names that only this machine knows.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = luc_cli::script(crate::Cli::command(), shell);
    if matches!(shell, Shell::Bash) {
        script.extend_from_slice(NAMES.as_bytes());
    }
    script
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        luc_testkit::command_line::assert_names_are_unique(crate::Cli::command());
    }

    #[test]
    fn bash_can_read_its_script() {
        for (words, expected) in [
            ("luc thr", "throttle"),
            ("luc run --pol", "--policy"),
            ("luc run --policy de", "delay"),
            ("luc throttle run --policy f", "fcfs"),
            ("luc disk remove ", "here there"),
            ("luc disk remove t", "there"),
            ("luc enable ngi", "nginx.service"),
            ("luc fleet ex", "explain"),
            ("luc fleet explain --r", "--rows"),
        ] {
            let completed = completed(words);
            assert_eq!(completed.trim_end(), expected, "{words}");
        }
    }

    /// The script's completion of a line, where systemctl and luc-fleet are stubs and two disks are there.
    fn completed(line: &str) -> String {
        let place = tempfile::tempdir().expect("a directory");
        for disk in ["here", "there"] {
            std::fs::create_dir_all(place.path().join("disk").join(disk)).expect("made");
        }
        let stubs = r#"
            systemctl() { printf '%s enabled\n' nginx.service ngircd@.service cron.service; }
            luc() { echo '_luc__fleet() { case "$2" in ex) COMPREPLY=(explain);; --r) [ "${COMP_WORDS[1]}" = explain ] && COMPREPLY=(--rows);; esac; }'; }
            eval "$LINE"
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _luc_names luc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[@]}"
        "#;
        let path = place.path().join("script");
        let script = [script(Shell::Bash), stubs.as_bytes().to_vec()].concat();
        std::fs::write(&path, script).expect("written");
        let line: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let output = Command::new("bash")
            .arg(path)
            .env("LINE", format!("COMP_WORDS=({})", line.join(" ")))
            .env("LUC_RUN_DIR", place.path())
            .stderr(Stdio::inherit())
            .output()
            .expect("bash runs");
        String::from_utf8(output.stdout).expect("text")
    }
}
