//! The workloads that come with the program, written to the parameters of Filebench's personalities.

const STOCK: [(&str, &str); 5] = [
    ("varmail", include_str!("../../workloads/varmail.f")),
    ("fileserver", include_str!("../../workloads/fileserver.f")),
    ("webserver", include_str!("../../workloads/webserver.f")),
    ("webproxy", include_str!("../../workloads/webproxy.f")),
    (
        "singlestreamread",
        include_str!("../../workloads/singlestreamread.f"),
    ),
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
    STOCK.map(|(name, _)| name).join(", ")
}
