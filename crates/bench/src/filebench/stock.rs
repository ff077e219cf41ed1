//! The workloads that come with the program, written to the parameters of Filebench's personalities.

/// Name and text of each file in `workloads/`.
macro_rules! stock {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../workloads/", $name, ".f")))),+]
    };
}

pub(super) const STOCK: &[(&str, &str)] = stock![
    "varmail",
    "fileserver",
    "webserver",
    "webproxy",
    "oltp",
    "singlestreamread",
];

/// The text of the workload called `name`.
pub(super) fn text(name: &str) -> Option<&'static str> {
    STOCK
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// All names.
pub(super) fn names() -> String {
    let names: Vec<&str> = STOCK.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
