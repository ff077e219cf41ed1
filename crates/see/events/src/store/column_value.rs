//! Storage of a field's type in a Parquet column.

use parquet::basic::{LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};

use crate::event_kinds::{
    CommitKind, ConnectionFamily, CounterMode, DataDirection, FileCallKind, MessageDirection,
    RequestFlags, RequestKind, SequenceSource, SocketRole, SummarizedKind, SyncKind, WaitState,
};
use crate::{Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction, WaitCause};

/// A value without meaning in its column's type, such as an unknown name of a cause.
#[derive(Debug)]
pub struct BadCell;

/// A field's type.
pub trait ColumnValue: Sized {
    /// Parquet type of the column.
    type Physical: PhysicalType;
    /// State that is kept from value to value while a column is read.
    type Known: Default;
    /// Key that identifies a value, for a column with few different values, which gets a dictionary.
    const KEY: Option<fn(&Self) -> u64>;

    /// Returns the meaning of the column's values.
    fn logical_type() -> Option<LogicalType>;

    /// Returns the value as stored in the column.
    fn store(&self) -> <Self::Physical as DataType>::T;

    /// Reads the value that is stored in the column.
    fn load(
        value: &<Self::Physical as DataType>::T,
        known: &mut Self::Known,
    ) -> Result<Self, BadCell>;
}

/// A Parquet type that columns of ours have.
pub trait PhysicalType: DataType + Sized {
    /// Returns the reader of a column of this type; `None` for another type.
    fn reader(column: &mut ColumnReader) -> Option<&mut ColumnReaderImpl<Self>>;

    /// Appends the value in Parquet's plain encoding.
    fn write_plain(value: &Self::T, out: &mut Vec<u8>);
}

macro_rules! physical {
    ($($type:ident $variant:ident $write:expr;)+) => {
        $(impl PhysicalType for $type {
            fn reader(column: &mut ColumnReader) -> Option<&mut ColumnReaderImpl<Self>> {
                match column {
                    ColumnReader::$variant(reader) => Some(reader),
                    _ => None,
                }
            }

            fn write_plain(value: &Self::T, out: &mut Vec<u8>) {
                let write: fn(&Self::T, &mut Vec<u8>) = $write;
                write(value, out);
            }
        })+
    };
}
physical!(
    BoolType BoolColumnReader |value, out| out.push(u8::from(*value));
    Int32Type Int32ColumnReader |value, out| out.extend_from_slice(&value.to_le_bytes());
    Int64Type Int64ColumnReader |value, out| out.extend_from_slice(&value.to_le_bytes());
    ByteArrayType ByteArrayColumnReader |value, out| {
        out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        out.extend_from_slice(value.data());
    };
);

impl ColumnValue for u64 {
    type Physical = Int64Type;
    type Known = ();
    const KEY: Option<fn(&Self) -> u64> = Some(|value| *value);

    fn logical_type() -> Option<LogicalType> {
        Some(LogicalType::integer(64, false))
    }

    fn store(&self) -> i64 {
        self.cast_signed()
    }

    fn load(value: &i64, _: &mut ()) -> Result<Self, BadCell> {
        Ok(value.cast_unsigned())
    }
}

impl ColumnValue for i64 {
    type Physical = Int64Type;
    type Known = ();
    const KEY: Option<fn(&Self) -> u64> = Some(|value| value.cast_unsigned());

    fn logical_type() -> Option<LogicalType> {
        Some(LogicalType::integer(64, true))
    }

    fn store(&self) -> i64 {
        *self
    }

    fn load(value: &i64, _: &mut ()) -> Result<Self, BadCell> {
        Ok(*value)
    }
}

impl ColumnValue for u32 {
    type Physical = Int32Type;
    type Known = ();
    const KEY: Option<fn(&Self) -> u64> = Some(|value| u64::from(*value));

    fn logical_type() -> Option<LogicalType> {
        Some(LogicalType::integer(32, false))
    }

    fn store(&self) -> i32 {
        self.cast_signed()
    }

    fn load(value: &i32, _: &mut ()) -> Result<Self, BadCell> {
        Ok(value.cast_unsigned())
    }
}

impl ColumnValue for bool {
    type Physical = BoolType;
    type Known = ();
    const KEY: Option<fn(&Self) -> u64> = None;

    fn logical_type() -> Option<LogicalType> {
        None
    }

    fn store(&self) -> bool {
        *self
    }

    fn load(value: &bool, _: &mut ()) -> Result<Self, BadCell> {
        Ok(*value)
    }
}

impl ColumnValue for String {
    type Physical = ByteArrayType;
    type Known = ();
    const KEY: Option<fn(&Self) -> u64> = None;

    fn logical_type() -> Option<LogicalType> {
        Some(LogicalType::String)
    }

    fn store(&self) -> ByteArray {
        self.as_str().into()
    }

    fn load(value: &ByteArray, _: &mut ()) -> Result<Self, BadCell> {
        value.as_utf8().map(str::to_owned).map_err(|_| BadCell)
    }
}

/// Newtypes are stored as their inner values.
macro_rules! wrapped {
    ($($name:ident($inner:ty)),+) => {
        $(impl ColumnValue for $name {
            type Physical = <$inner as ColumnValue>::Physical;
            type Known = <$inner as ColumnValue>::Known;
            const KEY: Option<fn(&Self) -> u64> = Some(|value| u64::from(value.0));

            fn logical_type() -> Option<LogicalType> {
                <$inner>::logical_type()
            }

            fn store(&self) -> <Self::Physical as DataType>::T {
                self.0.store()
            }

            fn load(
                value: &<Self::Physical as DataType>::T,
                known: &mut Self::Known,
            ) -> Result<Self, BadCell> {
                <$inner>::load(value, known).map(Self)
            }
        })+
    };
}
wrapped!(
    Transaction(u32),
    Pid(u32),
    Tgid(u32),
    Cgroup(u64),
    Inode(u64),
    ConnectionId(u32),
    StackId(u32),
    Dev(u32),
    RequestFlags(u32)
);

/// Number of a column's names that are remembered while it is read.
const KNOWN_NAMES: usize = 32;

/// Cells by the address and length of their names. Values of one dictionary entry share its memory. So a name is
/// looked up once per entry and not once per row.
#[derive(Debug)]
pub struct KnownNames<C>([Option<(*const u8, usize, C)>; KNOWN_NAMES]);

impl<C: Copy> Default for KnownNames<C> {
    fn default() -> Self {
        Self([None; KNOWN_NAMES])
    }
}

impl<C: Copy> KnownNames<C> {
    /// Returns the cell of a name. `from_name` finds new ones.
    fn get(
        &mut self,
        name: &ByteArray,
        from_name: impl FnOnce(&str) -> Option<C>,
    ) -> Result<C, BadCell> {
        let (at, length) = (name.data().as_ptr(), name.len());
        let slot = &mut self.0[at.addr() / 4 % KNOWN_NAMES];
        match *slot {
            Some((known_at, known_length, cell)) if known_at == at && known_length == length => {
                Ok(cell)
            }
            _ => {
                let cell = name.as_utf8().ok().and_then(from_name).ok_or(BadCell)?;
                *slot = Some((at, length, cell));
                Ok(cell)
            }
        }
    }
}

/// Enumerations are stored as their names.
macro_rules! named {
    ($($name:ident),+) => {
        $(impl ColumnValue for $name {
            type Physical = ByteArrayType;
            type Known = KnownNames<Self>;
            // Where its name is: each is there once. Were it twice, it would stand twice in the dictionary.
            const KEY: Option<fn(&Self) -> u64> =
                Some(|value| value.name().as_ptr().addr() as u64);

            fn logical_type() -> Option<LogicalType> {
                Some(LogicalType::String)
            }

            fn store(&self) -> ByteArray {
                ByteArray::from(bytes::Bytes::from_static(self.name().as_bytes()))
            }

            fn load(value: &ByteArray, known: &mut Self::Known) -> Result<Self, BadCell> {
                known.get(value, Self::from_name)
            }
        })+
    };
}
named!(
    SyncKind,
    FileCallKind,
    CommitKind,
    WaitState,
    RequestKind,
    DataDirection,
    SummarizedKind,
    MessageDirection,
    CounterMode,
    ConnectionFamily,
    SocketRole,
    SequenceSource,
    WaitCause
);

/// A column's name, type and meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct ParquetColumn {
    /// Name of the field.
    pub name: &'static str,
    /// Documentation of the field in one line.
    pub description: String,
    /// Parquet type of the column.
    pub physical_type: Type,
    /// Meaning of its values.
    pub logical_type: Option<LogicalType>,
}

/// Kind of a column's values, apart from their storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers of 64 bits, none of them negative.
    U64,
    /// Whole numbers of 64 bits.
    I64,
    /// Whole numbers of 32 bits, none of them negative.
    U32,
    /// Text in UTF-8.
    Text,
    /// True or false.
    Boolean,
}

impl ParquetColumn {
    /// Returns the kind of its values.
    #[must_use]
    pub fn kind(&self) -> ColumnKind {
        match self.physical_type {
            Type::BOOLEAN => ColumnKind::Boolean,
            Type::INT32 => ColumnKind::U32,
            Type::INT64 if self.logical_type == i64::logical_type() => ColumnKind::I64,
            Type::INT64 => ColumnKind::U64,
            _ => ColumnKind::Text,
        }
    }

    /// Makes the column of a field of type `T` with its documentation.
    pub fn of<T: ColumnValue>(name: &'static str, documentation: &[&str]) -> Self {
        let lines: Vec<&str> = documentation.iter().map(|line| line.trim()).collect();
        Self {
            name,
            description: lines.join(" "),
            physical_type: T::Physical::get_physical_type(),
            logical_type: T::logical_type(),
        }
    }
}
