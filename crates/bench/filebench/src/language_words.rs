//! The words of the language: types of flowops, attributes of each definition.

pub(super) const FLOWOPS: &[&str] = &[
    "openfile",
    "createfile",
    "closefile",
    "fsync",
    "deletefile",
    "statfile",
    "fsyncset",
    "read",
    "write",
    "readwholefile",
    "writewholefile",
    "appendfile",
    "appendfilerand",
    "makedir",
    "removedir",
    "listdir",
    "aiowrite",
    "aiowait",
    "delay",
    "think",
    "hog",
    "block",
    "wakeup",
    "semblock",
    "sempost",
    "eventlimit",
    "iopslimit",
    "opslimit",
    "bwlimit",
    "finishoncount",
    "finishonbytes",
    "print",
    "testrandvar",
];

/// Attributes of `file` and `fileset`; the last five of a fileset only.
pub(super) const FILES: &[&str] = &[
    "name",
    "path",
    "size",
    "filesize",
    "prealloc",
    "paralloc",
    "reuse",
    "trusttree",
    "readonly",
    "writeonly",
    "cached",
    "entries",
    "leafdirs",
    "dirwidth",
    "dirgamma",
    "dirdepthrv",
];

pub(super) const PROCESS: &[&str] = &["name", "instances", "nice"];

pub(super) const THREAD: &[&str] = &["name", "instances", "memsize", "useism", "ioprio"];

pub(super) const FLOWOP: &[&str] = &[
    "name",
    "filename",
    "filesetname",
    "fd",
    "srcfd",
    "iosize",
    "iters",
    "workingset",
    "random",
    "dsync",
    "directio",
    "noreadahead",
    "indexed",
    "opennext",
    "target",
    "value",
    "blocking",
    "highwater",
];

pub(super) const COMPOSITE: &[&str] = &["name", "iters"];

pub(super) const RANDOM: &[&str] =
    &["name", "type", "min", "mean", "gamma", "round", "seed", "randsrc", "randtable"];

pub(super) const CUSTOM: &[&str] = &["type", "parameters", "min", "max", "round"];

pub(super) const EVENTS: &[&str] = &["rate"];

/// Returns advice about a command of Filebench 1.4's interactive shell, which version 1.5 does not have either.
pub(super) fn of_the_old_shell(command: &str) -> Option<&'static str> {
    Some(match command {
        "usage" => "remove this line: it only prints a text",
        "load" => {
            "remove this line, and name the workload: luc bench filebench NAME --dir DIR --set NAME=VALUE"
        }
        "stats" | "shutdown" | "abort" | "log" | "dirs" | "help" | "vars" => {
            "remove this line: luc bench prints the figures and clears up by itself"
        }
        "foreach" | "foreachvar" => "start luc bench filebench once for each value, with --set",
        _ => return None,
    })
}
