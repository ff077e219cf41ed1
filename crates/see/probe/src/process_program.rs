//! The program of a process.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// Maximum length of a command line that is read, bytes: Java's have long lists of libraries.
const MAX_COMMAND_LINE_BYTES: u64 = 256 << 10;

/// An interpreter, and the place of its script among its arguments.
struct Interpreter {
    /// Names of its file, without a version.
    names: &'static [&'static str],
    /// Options with a separate argument.
    with_argument: &'static [&'static str],
    /// Options whose argument is what it runs.
    runs: &'static [&'static str],
    /// Options after which it runs what is in the arguments themselves.
    runs_text: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python"],
        with_argument: &["-W", "-X", "--check-hash-based-pycs"],
        runs: &["-m"],
        runs_text: &["-c", "-"],
    },
    Interpreter {
        names: &["java"],
        with_argument: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--add-modules",
            "--add-opens",
            "--add-exports",
            "--add-reads",
            "--upgrade-module-path",
            "--source",
        ],
        runs: &["-jar", "-m", "--module"],
        runs_text: &[],
    },
    Interpreter {
        names: &["node", "nodejs"],
        with_argument: &["-r", "--require", "--import", "-C", "--conditions", "--loader"],
        runs: &[],
        runs_text: &["-e", "--eval", "-p", "--print", "-"],
    },
    Interpreter {
        names: &["perl"],
        with_argument: &["-I", "-M"],
        runs: &[],
        runs_text: &["-e", "-E", "-"],
    },
    Interpreter {
        names: &["ruby"],
        with_argument: &["-r", "-I", "-C"],
        runs: &[],
        runs_text: &["-e", "-"],
    },
    Interpreter {
        names: &["php"],
        with_argument: &["-c", "-d"],
        runs: &["-f"],
        runs_text: &["-r", "-S", "-"],
    },
];

/// Returns the path of a process' program, and its script; `None` if the process has ended, or is a kernel thread.
pub(crate) fn of(process: u32) -> Option<(String, String)> {
    let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{process}/cmdline")).ok()?;
    file.take(MAX_COMMAND_LINE_BYTES).read_to_end(&mut line).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let arguments: Vec<&str> = words.iter().skip(1).map(AsRef::as_ref).collect();
    let script = script(&path, &arguments).unwrap_or_default().to_owned();
    Some((path.display().to_string(), script))
}

/// Returns the script of an interpreter, by its arguments.
fn script<'a>(path: &Path, arguments: &[&'a str]) -> Option<&'a str> {
    let name = path.file_name()?.to_string_lossy();
    let name = name.trim_end_matches(|one: char| one.is_ascii_digit() || one == '.');
    let mut interpreters = INTERPRETERS.iter();
    let one = interpreters.find(|one| one.names.contains(&name))?;
    let mut arguments = arguments.iter();
    while let Some(&argument) = arguments.next() {
        if one.runs.contains(&argument) {
            return arguments.next().copied();
        }
        if one.runs_text.contains(&argument) {
            return None;
        }
        if one.with_argument.contains(&argument) {
            arguments.next();
        } else if !argument.starts_with('-') {
            return Some(argument).filter(|argument| !argument.is_empty());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script_of(line: &str) -> Option<&str> {
        let words: Vec<&str> = line.split(' ').collect();
        script(Path::new(words[0]), &words[1..])
    }

    #[test]
    fn interpreters_run_scripts_modules_and_classes() {
        for (line, script) in [
            ("/usr/bin/python3.11 -u /srv/app.py secret", Some("/srv/app.py")),
            ("/usr/bin/python3 -X dev -m gunicorn app:app", Some("gunicorn")),
            ("/usr/bin/python3 -c print()", None),
            ("/usr/lib/jvm/bin/java -Xmx1g -cp a.jar:b.jar org.Main --key x", Some("org.Main")),
            ("/usr/lib/jvm/bin/java -jar start.jar", Some("start.jar")),
            ("/usr/bin/node --require ./a.js server.js", Some("server.js")),
            ("/usr/bin/nodejs server.js", Some("server.js")),
            ("/usr/bin/perl -w /usr/bin/tool", Some("/usr/bin/tool")),
            ("/usr/bin/javac Main.java", None),
            ("/usr/sbin/mariadbd --user=mysql", None),
            ("/usr/bin/python3", None),
        ] {
            assert_eq!(script_of(line), script, "{line}");
        }
    }

    #[test]
    fn a_process_has_a_program() {
        let (path, script) = of(std::process::id()).expect("this process");
        assert!(path.contains("luc_probe"), "{path}");
        assert_eq!(script, "");
        assert_eq!(of(u32::MAX), None);
    }
}
