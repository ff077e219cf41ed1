//! Pages that judge a paper's claims by the raw data of plans' pages.

use std::collections::BTreeMap;
use std::fs;

use luc_claims::{Claims, Data, Paper, PartPage};

use crate::harness::missing;
use crate::parts::Made;
use crate::plans::Planned;
use crate::{EvaluateError, Options, PARTS, Part, Verdict};

/// Makes the page; nothing is measured.
pub(super) fn run(
    part: Part,
    paper: &str,
    page: &str,
    options: &Options,
) -> Result<Verdict, EvaluateError> {
    let name = part.name();
    let paper = Paper::parse(name, paper)?;
    let mut pages = BTreeMap::new();
    for page in paper.pages() {
        let plan = planned(page).ok_or_else(|| missing(&format!("the plan {page}")))?;
        let raw = options.out.join(format!("raw/{page}.json"));
        pages.insert(page.to_owned(), (Claims::parse(page, plan.claims)?, Data::read(&raw)?));
    }
    let page = PartPage::parse(name, page, None)?.page(&paper.judge(&pages)?)?;
    let links: Vec<String> = pages.keys().map(|page| format!("[{page}]({page}.md)")).collect();
    let made = format!(
        "These pages say when, where and from which commit they were measured: {}.",
        links.join(", ")
    );
    let own = format!("`raw/{name}.json`");
    let text = page.markdown(name, &made).replacen(&own, "`raw`, in the files of other pages", 1);
    let path = options.out.join(format!("{name}.md"));
    fs::write(&path, text).map_err(EvaluateError::file("write", &path))?;
    Ok(Verdict {
        page: path,
        targets: page.targets.iter().map(ToString::to_string).collect(),
        met: page.targets.iter().all(|target| target.met != Some(false)),
    })
}

fn planned(name: &str) -> Option<Planned> {
    PARTS.into_iter().find_map(|part| match part.made {
        Made::Planned(planned) if planned.name == name => Some(planned),
        _ => None,
    })
}
