//! Resolution of files and filesets.

use super::super::ast::{AstAttributes, AstValue};
use super::super::diagnostic::Diagnostic;
use super::super::drawn_numbers::WorkloadNumber;
use super::super::plan::{FileAccess, PlannedFileset};
use super::scope::{VariableBinding, VariableScope};

impl VariableScope {
    pub(super) fn files(
        &self,
        alone: bool,
        attributes: &AstAttributes,
    ) -> Result<PlannedFileset, Diagnostic> {
        let depth = attributes
            .get("dirdepthrv")
            .map(|found| self.number(found.at, &found.value))
            .transpose()?;
        let cached = attributes.get("cached").is_none() || self.boolean(attributes, "cached")?;
        let name = self.required(attributes, "name")?;
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(Diagnostic::new(
                attributes.at,
                format!("'{name}' is no file name"),
                "write a plain name",
            ));
        }
        let prealloc = match attributes.get("prealloc") {
            None => 0,
            Some(found) => match self.look_up(found.at, &found.value)? {
                VariableBinding::Plain(AstValue::Boolean(all)) => 100 * u64::from(all),
                _ => self.integer(found.at, &found.value)?.min(100),
            },
        };
        let size = ["size", "filesize"].into_iter().find_map(|name| attributes.get(name));
        let access =
            match (self.boolean(attributes, "readonly")?, self.boolean(attributes, "writeonly")?) {
                (true, _) => FileAccess::Read,
                (_, true) => FileAccess::Write,
                _ => FileAccess::Both,
            };
        Ok(PlannedFileset {
            name,
            entries: if alone { 1 } else { self.integer_or(attributes, "entries", 0)? },
            size: size.map_or(Ok(WorkloadNumber::Fixed(1024)), |size| {
                self.number(size.at, &size.value)
            })?,
            leaf_directories: if alone { 0 } else { self.integer_or(attributes, "leafdirs", 0)? },
            prealloc,
            depth,
            cached,
            dirwidth: self.integer_or(attributes, "dirwidth", if alone { 10 } else { 1 })?.max(1),
            dirgamma: self.integer_or(attributes, "dirgamma", if alone { 0 } else { 1500 })?,
            alone,
            access,
        })
    }
}
