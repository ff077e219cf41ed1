//! The workloads that come with the program, written to the parameters of Filebench's personalities.

/// Name and text of each file in `workloads/`.
macro_rules! stock {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../personalities/", $name, ".f")))),+]
    };
}

const STOCK: &[(&str, &str)] = stock![
    "varmail",
    "fileserver",
    "webserver",
    "webproxy",
    "oltp",
    "compflow_demo",
    "copyfiles",
    "createdelete-swing",
    "createfiles",
    "cvar_example",
    "filemicro_create",
    "filemicro_createfiles",
    "filemicro_createrand",
    "filemicro_delete",
    "filemicro_rread",
    "filemicro_rwrite",
    "filemicro_rwritedsync",
    "filemicro_rwritefsync",
    "filemicro_seqread",
    "filemicro_seqwrite",
    "filemicro_seqwriterand",
    "filemicro_seqwriterandvargam",
    "filemicro_seqwriterandvartab",
    "filemicro_statfile",
    "filemicro_writefsync",
    "fivestreamread",
    "fivestreamreaddirect",
    "fivestreamwrite",
    "fivestreamwritedirect",
    "listdirs",
    "makedirs",
    "mongo",
    "netsfs",
    "networkfs",
    "openfiles",
    "randomfileaccess",
    "randomread",
    "randomrw",
    "randomwrite",
    "ratelimcopyfiles",
    "removedirs",
    "singlestreamread",
    "singlestreamreaddirect",
    "singlestreamwrite",
    "singlestreamwritedirect",
    "tpcso",
    "videoserver",
    "slides-web",
    "slides-file",
    "slides-mail",
    "slides-database",
];

/// Returns the text of the stock workload called `name`.
#[must_use]
pub fn stock(name: &str) -> Option<&'static str> {
    STOCK.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

pub fn stock_names() -> impl Iterator<Item = &'static str> {
    STOCK.iter().map(|(name, _)| *name)
}

/// Returns the same as an enumeration.
pub(super) fn list_names() -> String {
    stock_names().collect::<Vec<_>>().join(", ")
}
