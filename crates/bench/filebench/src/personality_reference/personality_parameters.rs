//! The parameters of Filebench's personalities.
//!
//! A loop is written as its flowops in their order: O C N D S F open, close, create, delete, stat, fsync;
//! RW WW A AR r w whole reads and writes, appends, reads, writes; aw ai asynchronous writes and waits; M X L
//! directories made, removed, listed. `x10`: as often in a round. `=2048`: each moves so much. `~16384/13377`:
//! so much on average, with this standard deviation. `+1`: an opening by each thread counts as well. `?`: may
//! be skipped, as the deletion of a file that is open.

/// Parameters of one of Filebench's personalities.
#[derive(Debug)]
pub struct PersonalityParameters {
    pub name: &'static str,
    /// Variables that make it small: for a test, or where the files of the original do not fit.
    pub small: &'static [&'static str],
    /// Entries or leaf directories, directory width and percent made in advance, of each fileset.
    pub filesets: &'static str,
    /// Threads of each loop and its flowops; sizes and rounds are those with the small variables.
    pub loops: &'static [&'static str],
}

const fn stock(
    name: &'static str,
    small: &'static [&'static str],
    filesets: &'static str,
    loops: &'static [&'static str],
) -> PersonalityParameters {
    PersonalityParameters { name, small, filesets, loops }
}

const SMALL: &[&str] = &["filesize=8m"];
/// Sequential reads of 1 MiB of 8 MiB: each ninth finds the end.
const READ: &str = "1: r~932068/329543+1";
const WRITE: &str = "1: w=1048576+1";
/// Deviation of a gamma variable of shape 1.5.
pub(super) const APPEND: &str = "AR~8191.5/4730";

pub const STOCKS: &[PersonalityParameters] = &[
    stock(
        "varmail",
        &["nthreads=2", "nfiles=5000"],
        "1000w1000000p80",
        &["16: D? N [A] F C O RW [A] F C O RW C"],
    ),
    stock(
        "fileserver",
        &["nthreads=2", "nfiles=5000", "filesize=8k"],
        "10000w20p80",
        &["50: N WW=8192 C O [A] C O RW C D? S"],
    ),
    stock(
        "webserver",
        &["nthreads=2"],
        "1000w20p100 1w20p100",
        &[
            "100: O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C \
            O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C O RW~16384/13377 C [A]+1",
        ],
    ),
    stock(
        "webproxy",
        &["nthreads=2", "nfiles=5000"],
        "10000w1000000p80",
        &["100: D? N [A] C O RW C O RW C O RW C O RW C O RW C"],
    ),
    stock(
        "oltp",
        &["nshadows=4", "ndbwriters=2", "usermode=100"],
        "10w1024p100 1w1024p100",
        &["1: aw=262144+1 ai", "10: aw=2048x100+10 ai", "200: r=2048+10"],
    ),
    stock(
        "compflow_demo",
        &["filesize=8k", "nthreads=1"],
        "700w20p80 700w20p80 700w20p80",
        &[
            "10: N [A] C Ox5 Ox5 RWx5 WW=8192x5 Cx5 Cx5 D? S",
            "10: N [A] C Ox4 Ox4 RWx4 WW=8192x4 Cx4 Cx4 D? S",
            "10: N [A] C Ox3 Ox3 RWx3 WW=8192x3 Cx3 Cx3 D? S",
        ],
    ),
    stock("copyfiles", &[], "1000w20p100 1000w20p0", &["1: O RW=16384 N WW=16384 C C"]),
    stock(
        "ratelimcopyfiles",
        &["eventrate=1000"],
        "1000w20p100 1000w20p0",
        &["1: O RW=16384 N WW=16384 C C"],
    ),
    stock("createdelete-swing", &["filesize=4k"], "1000w1000p0", &["1: N WW=4096 C", "1: D"]),
    stock("createfiles", &["nfiles=3000"], "50000w100p0", &["16: N WW=16384 C"]),
    stock("cvar_example", &["filesize=1m"], "1w10p100", &["1: O r~6143.5/1182 C"]),
    stock("filemicro_create", &["count=64"], "1w10p100", &["1: A=1048576+1"]),
    stock("filemicro_createfiles", &[], "20000w100000p50", &["1: N WW=1024 C"]),
    stock("filemicro_createrand", &["bytes=100m"], "1w10p100", &["1: AR~524287.5/302697x10+1 F"]),
    stock("filemicro_delete", &[], "5000w100p100", &["16: D"]),
    stock("filemicro_rread", SMALL, "1w10p100", &["1: r=2048+1"]),
    stock("filemicro_rwrite", SMALL, "1w10p100", &["1: w=2048+1"]),
    stock("filemicro_rwritedsync", SMALL, "1w10p100", &["1: w=2048+1"]),
    stock(
        "filemicro_rwritefsync",
        &["filesize=8m", "writes=1k"],
        "1w10p100",
        &["1: w=8192x1024+1 F"],
    ),
    stock("filemicro_seqread", SMALL, "1w10p100", &[READ]),
    stock("filemicro_seqwrite", &["writes=64"], "1w10p100", &["1: A=1048576x64+1"]),
    stock("filemicro_seqwriterand", &["writes=4k"], "1w10p100", &["1: O AR~4095.5/2365x4096 C"]),
    stock(
        "filemicro_seqwriterandvargam",
        &["writes=4k"],
        "1w1024p100",
        &["1: O A~5631.5/3762x4096 C"],
    ),
    stock(
        "filemicro_seqwriterandvartab",
        &["writes=4k"],
        "1w1024p100",
        &["1: O A~5631.5/9258x4096 C"],
    ),
    stock("filemicro_statfile", &["filesize=1k"], "10000w20p100", &["20: S"]),
    stock("filemicro_writefsync", &["syncs=8"], "1w10p100", &["1: A=8192x1024+1 F"]),
    stock("fivestreamread", SMALL, "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100", &[READ; 5]),
    stock(
        "fivestreamreaddirect",
        &["filesize=8m", "directio=false"],
        "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100",
        &[READ; 5],
    ),
    stock("fivestreamwrite", SMALL, "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100", &[WRITE; 5]),
    stock(
        "fivestreamwritedirect",
        &["filesize=8m", "directio=false"],
        "1w10p100 1w10p100 1w10p100 1w10p100 1w10p100",
        &[WRITE; 5],
    ),
    stock("listdirs", &["nfiles=1000"], "50000w5p100", &["16: L"]),
    stock("makedirs", &[], "10000w100p0", &["16: M"]),
    stock("removedirs", &[], "10000w100p100", &["16: X"]),
    stock("mongo", &[], "1000w20p100 1000w20p100", &["1: O [A] C O RW C D"]),
    stock(
        "netsfs",
        &["eventrate=0", "nfiles=5000"],
        "100000w20p60",
        &[
            "1: O RW O RW C O RW C C O RW N WW C C D? O RW N WW C C D? O RW N WW C C D? O RW N WW C C D? \
            O RW N WW C C D? O RW N WW C C D? O AR~18022/23700 C O AR~18022/23700 C O AR~18022/23700 C S",
        ],
    ),
    stock(
        "networkfs",
        &["eventrate=1000", "nfiles=5"],
        "100000w20p60",
        &["1: O RW O RW C O RW C C Ox6 RWx6 Nx6 WWx6 Cx6 Cx6 Dx6? Ox3 AR~18022/23700x3 Cx3 S"],
    ),
    stock("openfiles", &["nfiles=1000"], "50000w100p100", &["16: O C"]),
    stock(
        "randomfileaccess",
        &["nfiles=1000"],
        "10000w20p100",
        &["5: O O O AR~8191.5/8852 C RW RW C C"],
    ),
    stock("randomread", SMALL, "1w10p100", &["1: r=8192+1"]),
    stock("randomwrite", SMALL, "1w10p100", &["1: w=8192+1"]),
    stock("randomrw", SMALL, "1w10p100", &["1: r=8192+1", "1: w=8192+1"]),
    stock("singlestreamread", SMALL, "1w10p100", &[READ]),
    stock("singlestreamreaddirect", &["filesize=8m", "directio=false"], "1w10p100", &[READ]),
    stock("singlestreamwrite", &[], "1w10p100", &[WRITE]),
    stock("singlestreamwritedirect", &["directio=false"], "1w10p100", &[WRITE]),
    stock(
        "tpcso",
        &["unit=1k", "nshadows=2", "ndbwriters=1", "directio=false", "usermode=10"],
        "30",
        &["10: [aw=2048x10]29 ai", "1: w=262144+1", "200: [r=2048]30"],
    ),
    stock(
        "videoserver",
        &["filesize=4m", "nthreads=2", "eventrate=0"],
        "32w4p100 194w20p50",
        &["1: D N WW=4194304 C", "48: r~246724/61681+1"],
    ),
    stock(
        "slides-web",
        &["nthreads=2", "nfiles=1000"],
        "20000w20p100 1w20p100",
        &[
            "100: O RW~32768/26755 C O RW~32768/26755 C O RW~32768/26755 C O RW~32768/26755 C O RW~32768/26755 C \
            O RW~32768/26755 C O RW~32768/26755 C O RW~32768/26755 C O RW~32768/26755 C O RW~32768/26755 C [A]+1",
        ],
    ),
    stock(
        "slides-file",
        &["nthreads=2", "nfiles=5000", "filesize=8k"],
        "50000w20p80",
        &["100: N WW=8192 C O [A] C O RW C D? S"],
    ),
    stock(
        "slides-mail",
        &["nthreads=2", "nfiles=5000"],
        "50000w1000000p80",
        &["100: D? N [A] F C O RW [A] F C O RW C"],
    ),
    stock(
        "slides-database",
        &["nshadows=4", "ndbwriters=2", "usermode=100", "filesize=10m"],
        "10w1024p100 1w1024p100",
        &["1: aw=262144+1 ai", "10: aw=2048x5+10 ai", "200: r=2048+10"],
    ),
];

/// Sequential reads of 1 MiB of 1 GiB: each 1025th finds the end; of 5 GiB each 5121st.
const READ_1G: &str = "1: r~1047553/32737+1";
const READ_5G: &str = "1: r~1048371/14652+1";

/// The loops of those that have others with their own variables than with the small ones.
pub(super) const WHOLE: &[(&str, &[&str])] = &[
    ("fileserver", &["50: N WW~131072/107020 C O [A] C O RW C D? S"]),
    (
        "compflow_demo",
        &[
            "10: N [A] C Ox5 Ox5 RWx5 WW=131072x5 Cx5 Cx5 D? S",
            "10: N [A] C Ox4 Ox4 RWx4 WW=131072x4 Cx4 Cx4 D? S",
            "10: N [A] C Ox3 Ox3 RWx3 WW=131072x3 Cx3 Cx3 D? S",
        ],
    ),
    ("createdelete-swing", &["1: N WW=512000 C", "1: D"]),
    ("filemicro_rwritefsync", &["1: w=8192x16384+1 F"]),
    ("filemicro_seqread", &[READ_1G]),
    ("filemicro_seqwrite", &["1: A=1048576x1024+1"]),
    ("filemicro_seqwriterand", &["1: O AR~4095.5/2365x131072 C"]),
    ("filemicro_seqwriterandvargam", &["1: O A~5631.5/3762x131072 C"]),
    ("filemicro_seqwriterandvartab", &["1: O A~5631.5/9258x131072 C"]),
    ("fivestreamread", &[READ_1G; 5]),
    ("fivestreamreaddirect", &[READ_1G; 5]),
    ("singlestreamread", &[READ_5G]),
    ("singlestreamreaddirect", &[READ_5G]),
];
