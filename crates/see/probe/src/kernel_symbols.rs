//! Names of kernel addresses, from `/proc/kallsyms`.

use std::fs;
use std::ops::Range;

use luc_units::OnPath as _;

use crate::ProbeError;

/// Functions of the kernel, by address.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols {
    /// Address, and where the name lies in `names`; sorted by address.
    starts: Vec<(u64, u32, u32)>,
    names: String,
}

impl KernelSymbols {
    /// Reads the running kernel's table.
    pub(crate) fn read() -> Result<Self, ProbeError> {
        let path = "/proc/kallsyms";
        let text = fs::read_to_string(path).map_err(ProbeError::io("read", path))?;
        Ok(Self::parse(&text))
    }

    /// Takes the functions out of lines `address type name [module]`.
    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            let Ok(address) = u64::from_str_radix(address, 16) else {
                continue;
            };
            if address != 0 {
                let begin = table.names.len() as u32;
                table.names.push_str(name);
                table.starts.push((address, begin, table.names.len() as u32));
            }
        }
        table.starts.sort_unstable_by_key(|start| start.0);
        table
    }

    /// Returns the function that contains `address`; `None` if none begins before it.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let after = self.starts.partition_point(|start| start.0 <= address);
        let (_, begin, end) = self.starts.get(after.checked_sub(1)?)?;
        self.names.get(*begin as usize..*end as usize)
    }

    /// Address of the function of this name; `None` if there is none, or several.
    pub(crate) fn range(&self, name: &str) -> Option<Range<u64>> {
        let is_named = |start: &(u64, u32, u32)| {
            self.names.get(start.1 as usize..start.2 as usize) == Some(name)
        };
        let place = self.starts.iter().position(is_named)?;
        let (start, ..) = self.starts[place];
        let (end, ..) = self.starts[place + 1..].iter().find(|next| next.0 > start)?;
        let is_only = !self.starts[place + 1..].iter().any(is_named);
        is_only.then_some(start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let symbols = KernelSymbols::parse(
            "ffff0010 T second\nffff0000 t first\nffff0008 d data\nffff0020 t third\t[ext4]\nbad\n",
        );
        assert_eq!(symbols.name(0xffff_0000), Some("first"));
        assert_eq!(symbols.name(0xffff_000f), Some("first"));
        assert_eq!(symbols.name(0xffff_0010), Some("second"));
        assert_eq!(symbols.name(0xffff_9999), Some("third"));
        assert_eq!(symbols.name(0xfffe_ffff), None);
    }
    #[test]
    fn a_function_ends_where_the_next_begins() {
        let symbols = KernelSymbols::parse(
            "1000 T a\n1000 T alias_of_a\n1020 T b\n1040 t twice\n1050 t twice\n1060 T last\n",
        );
        assert_eq!(symbols.range("a"), Some(0x1000..0x1020));
        assert_eq!(symbols.range("b"), Some(0x1020..0x1040));
        assert_eq!(symbols.range("twice"), None);
        assert_eq!(symbols.range("last"), None);
        assert_eq!(symbols.range("none"), None);
    }
}
