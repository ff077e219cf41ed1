//! Circles of imports between the files of a crate. A re-export is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path below the crate: none for the root.
type Module = Vec<String>;
/// Target of a `use`: a module, and the name in it.
type Target = (Module, Option<String>);

/// Maximum number of re-exports that are followed for a name.
const MAX_REEXPORTS: usize = 6;

/// The crate whose sources are in a folder.
pub(crate) struct CrateSources {
    modules: BTreeMap<Module, Vec<Import>>,
}

struct Import {
    is_public: bool,
    path: Vec<String>,
}

impl CrateSources {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read(folder, &[], &mut modules);
        Self { modules }
    }

    /// A way from a file back to itself by imports, if there is one.
    pub(crate) fn circle(&self) -> Option<Vec<String>> {
        let arrows: BTreeMap<&Module, BTreeSet<Module>> =
            self.modules.keys().map(|module| (module, self.arrows(module))).collect();
        let mut done = BTreeSet::new();
        arrows.keys().find_map(|module| search(module, &arrows, &mut Vec::new(), &mut done))
    }

    fn arrows(&self, module: &Module) -> BTreeSet<Module> {
        let imports = self.modules[module].iter();
        imports
            .filter(|import| !import.is_public)
            .filter_map(|import| {
                let (found, name) = self.resolve(module, &import.path)?;
                Some(self.origin(found, name, 0))
            })
            .filter(|found| found != module)
            .collect()
    }

    /// The module that a path leads to, and the name that is left; `None` outside the crate.
    fn resolve(&self, module: &Module, path: &[String]) -> Option<Target> {
        let mut rest = path;
        let mut at = match rest.first()?.as_str() {
            "crate" => Vec::new(),
            "super" | "self" => module.clone(),
            first if self.has(module, first) => module.clone(),
            _ => return None,
        };
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "super" => drop(at.pop()),
                "crate" | "self" => {}
                _ => break,
            }
            rest = others;
        }
        while let Some((first, others)) = rest.split_first()
            && self.has(&at, first)
        {
            at.push(first.clone());
            rest = others;
        }
        Some((at, rest.first().cloned()))
    }

    fn has(&self, module: &Module, name: &str) -> bool {
        let child: Module = module.iter().cloned().chain([name.to_owned()]).collect();
        self.modules.contains_key(&child)
    }

    /// Returns the module that defines a name, through its re-exports.
    fn origin(&self, module: Module, name: Option<String>, steps: usize) -> Module {
        let Some(name) = name.filter(|_| steps < MAX_REEXPORTS) else {
            return module;
        };
        let imports = self.modules.get(&module).into_iter().flatten();
        let exported = imports
            .filter(|import| import.path.last() == Some(&name))
            .find_map(|import| self.resolve(&module, &import.path));
        match exported {
            Some((found, name)) if found != module => self.origin(found, name, steps + 1),
            _ => module,
        }
    }
}

fn search(
    module: &Module,
    arrows: &BTreeMap<&Module, BTreeSet<Module>>,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> Option<Vec<String>> {
    if let Some(begin) = way.iter().position(|before| before == module) {
        let circle = way[begin..].iter().chain([module]);
        return Some(circle.map(|module| module.join("::")).collect());
    }
    if done.contains(module) {
        return None;
    }
    way.push(module.clone());
    let next = arrows.get(module).into_iter().flatten();
    for next in next {
        if let Some(circle) = search(next, arrows, way, done) {
            return Some(circle);
        }
    }
    way.pop();
    done.insert(module.clone());
    None
}

fn read(folder: &Path, parent: &[String], modules: &mut BTreeMap<Module, Vec<Import>>) {
    for entry in fs::read_dir(folder).expect("listed").flatten() {
        let path = entry.path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        if name.starts_with("tests") || name.ends_with("_tests") || name == "bin" {
            continue;
        }
        let is_root = parent.is_empty() && (name == "lib" || name == "main");
        let mut module = parent.to_vec();
        if !is_root {
            module.push(name.into_owned());
        }
        if path.is_dir() {
            read(&path, &module, modules);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).expect("read");
            modules.insert(module, imports(&text));
        }
    }
}

/// The `use` lines of a file, its tests apart, each name by itself.
fn imports(text: &str) -> Vec<Import> {
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    let lines = code.unwrap_or_default().lines();
    let code: Vec<&str> =
        lines.map(|line| line.split("//").next().unwrap_or_default().trim()).collect();
    let mut all = Vec::new();
    let code = code.join(" ");
    for statement in code.split(';') {
        // What stands before, as a `mod` or an attribute, ends elsewhere.
        let Some((before, tree)) = statement.rsplit_once("use ") else {
            continue;
        };
        let is_statement = before.trim().is_empty() || before.ends_with([' ', ')']);
        if !is_statement {
            continue;
        }
        let is_public = before.trim_end().ends_with(')') || before.trim_end().ends_with("pub");
        let mut paths = Vec::new();
        expand(tree, &[], &mut paths);
        all.extend(paths.into_iter().map(|path| Import { is_public, path }));
    }
    all
}

/// The paths of a tree such as `a::{b, c::d}`.
fn expand(tree: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let (head, branches) = tree.split_once('{').unwrap_or((tree, ""));
    let head = head.split(" as ").next().unwrap_or_default();
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty());
    let path: Vec<String> = before.iter().cloned().chain(names.map(str::to_owned)).collect();
    if branches.is_empty() {
        paths.push(path);
        return;
    }
    let branches = branches.strip_suffix('}').unwrap_or(branches);
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in branches.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&branches[begin..at], &path, paths);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if !branches[begin..].trim().is_empty() {
        expand(&branches[begin..], &path, paths);
    }
}
