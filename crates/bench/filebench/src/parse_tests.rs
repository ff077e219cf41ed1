//! The parser on good, bad and random text.

use proptest::prelude::*;

use super::*;

const WHOLE: &str = r#"# every production
set $dir=/tmp
set mode quit firstdone  set mode nousestats
set $sz = cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5,min=1)
set $rv = randvar(type=tabular, min=1k, randtable={{60,1k,2k},{40,2k,8k}})
set $xy=$a * $b * 3
define randvar name=$v, type=uniform, mean=8k
define file name=run,path=$dir,size=$sz,prealloc,reuse
define fileset name="big set",path=$dir,size=$sz,entries=1000,dirwidth=20,prealloc=80,readonly=true
define flowop name=twice, $l, $m=3, iters=2 { flowop openfile name=o,filesetname=bigset flowop closefile name=c }
define process name=p,instances=2 {
  thread name=t,memsize=10m,instances=16 {
    flowop twice name=u, iters=3, $l=7
    flowop read name=random,filename=run,random,iosize=2k,fd=1,directio=true
  }
}
create files  debug 3  version  list fileset  enable lathist
eventgen rate=0
echo "run $dir" " and more"  system "sync"  sleep 5
psrun -10 60
quit
what follows is not read"#;

#[test]
fn the_whole_language() {
    let commands = parse(WHOLE).expect("parses");
    let processes: Vec<_> = commands
        .iter()
        .filter_map(|command| match &command.action {
            CommandAction::Process(_, threads) => Some(threads),
            _ => None,
        })
        .collect();
    let flowops = &processes[0][0].flowops;
    assert_eq!((processes.len(), flowops.len()), (1, 2));
    assert_eq!(flowops[0].attributes.locals, [("l".to_owned(), Some(AstValue::Integer(7)))]);
    let read = &flowops[1].attributes;
    let value = |name: &str| read.get(name).map(|attribute| attribute.value.clone());
    assert_eq!(value("random"), Some(AstValue::Boolean(true)));
    assert_eq!(value("iosize"), Some(AstValue::Integer(2048)));
    assert!(matches!(
        commands.last().map(|command| &command.action),
        Some(CommandAction::Run(Some(AstValue::Integer(60))))
    ));
}

#[test]
fn a_mistake_says_where_and_what_to_do() {
    for (text, message) in [
        ("sett $x=1", "1:1: unknown command 'sett'; did you mean 'set'?"),
        (
            "define fileset name=a,\n  entires=5",
            "2:3: unknown attribute of a fileset 'entires'; did you mean 'entries'?",
        ),
        (
            "define process name=p { thread name=t { flowop opnfile name=o } }",
            "1:48: unknown flowop 'opnfile'; did you mean 'openfile'?",
        ),
        (
            "define fileset name=a path=/x",
            "1:23: 'path' in a fileset; ',' between attributes belongs here",
        ),
        (
            "define process name=p { }",
            "1:25: '}' stands here; a part of a process (thread) belongs here",
        ),
        ("set $x=-1", "1:8: '-1' after '='; a number without sign belongs here"),
        (
            "define process name=p { thread name=t { flowop read name=r ",
            "the end of the file inside a thread; '}' belongs here",
        ),
        // On its own line, not where the next begins.
        (
            "set $dir=\nset mode quit alldone\n",
            "1:9: the line ends after '='; a value belongs here",
        ),
        (
            "define fileset name=a,entries=\nrun 1",
            "1:30: the line ends after 'entries='; a value belongs here",
        ),
        ("define\nrun 1", "2:1: unknown thing to define 'run'"),
        (
            "usage \"set $dir\"",
            "1:1: 'usage' is a command of Filebench 1.4's shell; remove this line",
        ),
        (
            "load varmail\nrun 60",
            "1:1: 'load' is a command of Filebench 1.4's shell; remove this line, and name",
        ),
    ] {
        let diagnostic = parse(text).expect_err(text).to_string();
        assert!(diagnostic.contains(message), "{diagnostic}\nnot {message}");
    }
}

proptest! {
    #[test]
    fn random_text_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_mutated_file_never_panics_and_its_mistake_is_in_it(
        from in 0..WHOLE.len(), length in 0_usize..40, with in "[ -~\n]{0,5}"
    ) {
        let to = (from + length).min(WHOLE.len());
        let text = format!("{}{with}{}", &WHOLE[..from], &WHOLE[to..]);
        if let Err(diagnostic) = parse(&text) {
            prop_assert!(diagnostic.at.line as usize <= text.lines().count() + 1);
            prop_assert!(diagnostic.at.column >= 1);
        }
    }
}
