//! Parts of the language that the stock workloads use little: small files on real directories.

use super::*;

/// Runs this file and returns its counts; `{}` stands for its directory.
fn ran(text: &str, compat: bool) -> (FilebenchReport, HashMap<String, u64>) {
    let scratch = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let path = scratch.path().join("file.f");
    let text = text.replace("{}", &scratch.path().display().to_string());
    fs::write(&path, text).expect("write");
    counts(&path.display().to_string(), &[], compat)
}

fn failed(text: &str) -> String {
    let scratch = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let path = scratch.path().join("file.f");
    fs::write(&path, text).expect("write");
    let workload = WorkloadFile::load(&path.display().to_string(), &[]).expect("loads");
    let options = FilebenchOptions {
        directory: scratch.path().to_path_buf(),
        measured_ns: Some(60_000_000_000),
        seed: 1,
        compat: false,
        cold: false,
    };
    let error = workload.run(&options, &mut |_| {}).expect_err(text);
    assert_eq!(fs::read_dir(scratch.path()).expect("list").count(), 1);
    error.to_string()
}

/// Writes a thread of these flowops, in a process of its own.
fn thread(name: &str, instances: u64, flowops: &str) -> String {
    format!(
        "define process name={name} {{ thread name=t,instances={instances} {{ {flowops} }} }}\n"
    )
}

const SET: &str = "define fileset name=set,path=/x,entries=10,dirwidth=4,size=8k,prealloc\n";

#[test]
fn semaphores_keep_readers_and_a_writer_in_step() {
    let readers = "flowop read name=read,filesetname=set,iosize=1k,random,opennext
        flowop sempost name=post,target=wait,value=1,blocking";
    let writers = "flowop aiowrite name=write,filesetname=set,iosize=1k,random,opennext
        flowop aiowait name=reap
        flowop semblock name=wait,value=10,highwater=5";
    let text = [SET, &thread("r", 3, readers), &thread("w", 1, writers)].concat();
    let (report, counts) = ran(&text, false);
    let (reads, writes) = (counts["read"], counts["write"]);
    // A burst begins when ten posts are taken, and the credit is 5 and 10 for each.
    assert!(writes > 1 && reads >= 10 * (writes - 1), "{counts:?}");
    assert!(reads <= 10 * (writes + 1) + 5 + 3, "{counts:?}");
    let write = report.moved.iter().find(|moved| moved.operation == "write");
    assert_eq!(write.map(|moved| moved.bytes), Some(writes * 1024));
    assert_eq!(report.operations.len(), 3, "posts and waits are no operations");
}

#[test]
fn a_failed_asynchronous_write_ends_the_run() {
    let set = SET.replace("prealloc", "prealloc,readonly");
    let writer = "flowop aiowrite name=write,filesetname=set,iosize=1k,random
        flowop aiowait name=reap";
    let error = failed(&(set + &thread("w", 2, writer)));
    assert!(error.contains("write") && !error.contains('\n'), "{error}");
}

#[test]
fn two_threads_wake_each_other_in_turn() {
    let ping = "flowop statfile name=ping,filesetname=set
        flowop wakeup name=wakepong,target=waitpong
        flowop finishoncount name=end,target=ping,value=50
        flowop block name=waitping";
    let pong = "flowop block name=waitpong
        flowop statfile name=pong,filesetname=set
        flowop wakeup name=wakeping,target=waitping";
    let text = [SET, &thread("a", 1, ping), &thread("b", 1, pong)].concat();
    let (_, counts) = ran(&text, false);
    assert_eq!(counts["ping"], 50);
    // The last wakeup may come after the end.
    assert!((49..=50).contains(&counts["pong"]), "{counts:?}");
}

#[test]
fn waiting_threads_end_with_the_run_or_with_the_last_that_could_wake_them() {
    let blocked = thread("b", 3, "flowop block name=wait");
    let works = thread("w", 1, "flowop statfile name=stat,filesetname=set");
    let (_, counts) = ran(&[SET, &blocked, &works].concat(), false);
    assert!(counts["stat"] > 0);
    let error = failed(&blocked);
    assert!(error.contains("every thread waits for another"), "{error}");
}

#[test]
fn a_count_ends_the_run_exactly() {
    let flowops = "flowop appendfile name=append,filesetname=set,iosize=1k
        flowop finishoncount name=end,value=20";
    let text = format!("{SET}{}", thread("a", 1, flowops));
    assert_eq!(ran(&text, false).1["append"], 20);
    // Filebench counts the control flowop too, ten times, and the opening, also as an append.
    assert_eq!(ran(&text, true).1["append"], 11);
    let flowops = "flowop appendfile name=append,filesetname=set,iosize=1k
        flowop statfile name=stat,filesetname=set
        flowop finishonbytes name=end,value=5k";
    let (report, counts) = ran(&format!("{SET}{}", thread("a", 1, flowops)), false);
    assert_eq!(counts["append"], 6, "more than 5 KiB");
    assert!(!report.head.interrupted);
}

#[test]
fn a_run_ends_when_its_first_or_last_thread_is_done() {
    let set = "define fileset name=set,path=/x,entries=100,dirwidth=9,size=0\n";
    let creator = "flowop createfile name=create,filesetname=set,fd=1
        flowop closefile name=close,fd=1";
    let (report, counts) =
        ran(&format!("set mode quit alldone {set}{}", thread("a", 4, creator)), false);
    assert_eq!((counts["create"], counts["close"]), (100, 100));
    assert!(report.head.measured_s < 86_400.0);
    let flowops =
        "flowop statfile name=stat,filesetname=set flowop finishoncount name=e,target=stat,value=7";
    let text = format!("set mode quit firstdone {SET}{}", thread("a", 2, flowops));
    let stats = ran(&text, false).1["stat"];
    assert!((7..=14).contains(&stats), "{stats}");
    let text = format!("set mode quit alldone {SET}{}", thread("a", 2, flowops));
    assert_eq!(ran(&text, true).1["stat"], 14);
}

#[test]
fn leaf_directories_are_made_removed_and_others_listed() {
    let set = "define fileset name=set,path=/x,leafdirs=50,dirwidth=5\n";
    let text = format!(
        "set mode quit firstdone {set}{}",
        thread("a", 1, "flowop makedir name=make,filesetname=set")
    );
    assert_eq!(ran(&text, true).1["make"], 50);
    let text = text.replace("dirwidth=5", "dirwidth=5,prealloc").replace("makedir", "removedir");
    assert_eq!(ran(&text, false).1["make"], 50);
    // The root with one directory of 20 files: 1 and 20 names of 8 letters, in turn.
    let text = "set mode quit firstdone
        define fileset name=set,path=/x,entries=20,dirwidth=100,dirgamma=0,prealloc,size=0\n"
        .to_owned()
        + &thread(
            "a",
            1,
            "flowop listdir name=list,filesetname=set flowop finishoncount name=e,target=list,value=10",
        );
    let (report, counts) = ran(&text, true);
    assert_eq!(counts["list"], 10);
    assert!((report.moved[0].mean_bytes - 287.0 * 21.0 / 2.0).abs() < 1e-9, "{report:?}");
}

#[test]
fn a_depth_variable_keeps_its_distribution() {
    let text = |depth: &str| {
        format!(
            "set mode quit firstdone set $dd=randvar(type=uniform,min=0,mean=1)
            define fileset name=set,path=/x,entries=600,dirwidth=6{depth},prealloc,size=0\n{}",
            thread(
                "a",
                1,
                "flowop fsyncset name=sync,filesetname=set
                flowop openfile name=open,filesetname=set,fd=3
                flowop fsyncset name=sync,filesetname=set
                flowop closefile name=close,fd=3
                flowop finishoncount name=e,target=close,value=4"
            )
        )
    };
    for depth in ["", ",dirdepthrv=$dd"] {
        let (_, counts) = ran(&text(depth), false);
        assert_eq!((counts["open"], counts["sync"]), (4, 4), "of open files only");
    }
}

#[test]
fn limits_keep_to_the_rate() {
    for limit in ["eventlimit", "opslimit", "iopslimit"] {
        let flowops = format!(
            "flowop write name=write,filesetname=set,iosize=1k,random
            flowop {limit} name=limit"
        );
        let text = format!("eventgen rate=200\n{SET}{}", thread("a", 2, &flowops));
        let (report, counts) = ran(&text, false);
        let most = 200.0 * report.head.measured_s + 10.0 + 4.0;
        assert!(counts["write"] > 0 && counts["write"] as f64 <= most, "{limit}: {counts:?}");
    }
    let flowops = "flowop write name=write,filesetname=set,iosize=8k,random,iters=128
        flowop bwlimit name=limit,target=write";
    let text = format!("eventgen rate=20\n{SET}{}", thread("a", 1, flowops));
    let (report, _) = ran(&text, false);
    let written = report.written_mib_per_second * report.head.measured_s;
    assert!(written <= 20.0 * report.head.measured_s + 10.0 + 2.0, "{written} MiB");
}

#[test]
fn a_composite_runs_its_body_with_its_variables() {
    let text = "define flowop name=inner, $set, $n=2 {
            flowop statfile name=stat,filesetname=$set,iters=$n }
        define flowop name=outer, $times {
            flowop inner name=two, $set=set
            flowop inner name=more, iters=$times, $set=set, $n=5 }
        set mode quit firstdone\n"
        .to_owned()
        + SET
        + &thread(
            "a",
            1,
            "flowop outer name=all, iters=3, $times=4
            flowop finishoncount name=end,value=1",
        );
    let (_, counts) = ran(&text, false);
    assert_eq!((counts["all.two.stat"], counts["all.more.stat"]), (6, 60), "{counts:?}");
    refused(
        "define flowop name=one, $set { flowop statfile name=s,filesetname=$set }
        define process name=p { thread name=t { flowop one name=o,$sets=x } }",
        "unknown local variable 'sets'; did you mean 'set'?",
    );
}

#[test]
fn an_index_names_the_file_and_opennext_goes_through_all() {
    let set = SET.replace("prealloc", "prealloc=0");
    let flowops = "flowop createfile name=create,filesetname=set,fd=1,indexed=3
        flowop closefile name=close,fd=1
        flowop deletefile name=delete,fd=1
        flowop finishoncount name=end,target=delete,value=30";
    let (_, counts) = ran(&(set + &thread("a", 1, flowops)), false);
    assert_eq!((counts["create"], counts["delete"]), (30, 30));
    // Ten files opened once each by their first read.
    let flowops = "flowop read name=read,filesetname=set,iosize=1k,random,opennext,noreadahead
        flowop finishoncount name=end,target=read,value=100";
    assert_eq!(ran(&format!("{SET}{}", thread("a", 1, flowops)), false).1["read"], 100);
    let report = ran(&format!("{SET}{}", thread("a", 1, flowops)), true).0;
    assert!((report.moved[0].mean_bytes - 1024.0 * 0.9).abs() < 1e-9, "{report:?}");
}

#[test]
fn commands_before_the_run_see_the_files() {
    let text = "set $dir=/nowhere
        define fileset name=set,path=$dir,entries=3,dirwidth=4,size=1k,prealloc
        create files
        system \"find $dir/set -type f | wc -l > {}/found\"
        system \"exit 3\" sleep 0 echo \"files in $dir\"
        define process name=p,nice=5 { thread name=t,ioprio=7 {
            flowop testrandvar name=draw,value=$rv
            flowop system_is_no_flowop name=x } }";
    refused(text, "unknown flowop 'system_is_no_flowop'");
    let text = text.replace(
        "flowop system_is_no_flowop name=x",
        "flowop statfile name=stat,filesetname=set flowop finishoncount name=e,value=999",
    );
    let scratch = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let place = scratch.path().display().to_string();
    let draws = |seed: u64| {
        let variable = "set $rv=randvar(type=uniform,min=0,mean=1000,seed=5)\n".to_owned();
        let path = scratch.path().join("file.f");
        fs::write(&path, variable + &text.replace("{}", &place)).expect("write");
        let workload = WorkloadFile::load(&path.display().to_string(), &[]).expect("loads");
        let options = FilebenchOptions {
            directory: scratch.path().to_path_buf(),
            measured_ns: None,
            seed,
            compat: false,
            cold: false,
        };
        let report = workload.run(&options, &mut |_| {}).expect("runs");
        report.drawn[0].clone()
    };
    let (one, two) = (draws(1), draws(2));
    let found = fs::read_to_string(scratch.path().join("found")).expect("found");
    assert_eq!(found.trim(), "3");
    assert_eq!((one.count, two.count), (999, 999));
    assert!((one.mean - two.mean).abs() < 1e-9, "a variable's own seed wins");
    // Uniform in 0 to 2000: a deviation of 577, of a mean of 999 draws 18.
    assert!((one.mean - 1000.0).abs() < 100.0 && (one.deviation - 577.0).abs() < 60.0, "{one:?}");
}
