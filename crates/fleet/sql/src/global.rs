//! `global_ns(host, ns)`: a time of a host on the clock of the first one.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, AsArray as _, Int64Builder};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use luc_fleet::GlobalTimes;
#[cfg(feature = "cluster")]
use luc_fleet::Knot;

pub(crate) const NAME: &str = "global_ns";

/// Bytes of a knot: its time, and the time on the first host's clock.
#[cfg(feature = "cluster")]
const KNOT_BYTES: usize = 16;
/// No time on the first host's clock.
#[cfg(feature = "cluster")]
const UNKNOWN: i64 = i64::MIN;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct GlobalNs {
    signature: Signature,
    times: Arc<GlobalTimes>,
}

impl GlobalNs {
    pub(crate) fn new(times: GlobalTimes) -> Self {
        let arguments = vec![DataType::Utf8, DataType::Int64];
        Self {
            signature: Signature::exact(arguments, Volatility::Immutable),
            times: Arc::new(times),
        }
    }

    /// The clocks as bytes, so that executors compute the same.
    #[cfg(feature = "cluster")]
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        for (name, knots) in &self.times.hosts {
            buffer.extend_from_slice(&(name.len() as u64).to_le_bytes());
            buffer.extend_from_slice(name.as_bytes());
            buffer.extend_from_slice(&(knots.len() as u64).to_le_bytes());
            for knot in knots {
                buffer.extend_from_slice(&knot.at_ns.to_le_bytes());
                buffer.extend_from_slice(&knot.global_ns.unwrap_or(UNKNOWN).to_le_bytes());
            }
        }
    }

    /// `None` if they are not what [`Self::encode`] writes.
    #[cfg(feature = "cluster")]
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut times = GlobalTimes::default();
        while !bytes.is_empty() {
            let length = number(&mut bytes)?.cast_unsigned();
            let name = taken(&mut bytes, usize::try_from(length).ok()?)?;
            let name = String::from_utf8(name.to_vec()).ok()?;
            let count = usize::try_from(number(&mut bytes)?).ok()?;
            let mut knots = taken(&mut bytes, count.checked_mul(KNOT_BYTES)?)?;
            let mut found = Vec::with_capacity(count);
            while !knots.is_empty() {
                let at_ns = number(&mut knots)?;
                let global_ns = Some(number(&mut knots)?).filter(|&ns| ns != UNKNOWN);
                found.push(Knot { at_ns, global_ns });
            }
            times.hosts.push((name, found));
        }
        Some(Self::new(times))
    }
}

#[cfg(feature = "cluster")]
fn taken<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    Some(head)
}

#[cfg(feature = "cluster")]
fn number(bytes: &mut &[u8]) -> Option<i64> {
    let head = taken(bytes, 8)?;
    Some(i64::from_le_bytes(head.try_into().ok()?))
}

impl ScalarUDFImpl for GlobalNs {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [hosts, times] = arrays.as_slice() else {
            let reason = format!("{NAME} takes a host's name and a time of it, in ns");
            return Err(DataFusionError::Plan(reason));
        };
        let hosts = hosts.as_string::<i32>();
        let times = times.as_primitive::<Int64Type>();
        let places: HashMap<&str, usize> = self
            .times
            .hosts
            .iter()
            .enumerate()
            .map(|(place, (name, _))| (name.as_str(), place))
            .collect();
        let mut found = Int64Builder::with_capacity(times.len());
        // Rows of one host mostly follow each other.
        let mut last: Option<(&str, Option<usize>)> = None;
        for row in 0..times.len() {
            if hosts.is_null(row) || times.is_null(row) {
                found.append_null();
                continue;
            }
            let host = hosts.value(row);
            let place = match last {
                Some((name, place)) if name == host => place,
                _ => places.get(host).copied(),
            };
            last = Some((host, place));
            let at_ns = times.value(row);
            found.append_option(place.and_then(|place| self.times.global_ns(place, at_ns)));
        }
        Ok(ColumnarValue::Array(Arc::new(found.finish())))
    }
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;

    fn times() -> GlobalTimes {
        let knot = |at_ns, global_ns| Knot { at_ns, global_ns };
        let knots = vec![knot(0, None), knot(1_000, Some(77)), knot(2_000, Some(1_077))];
        GlobalTimes { hosts: vec![("web".to_owned(), Vec::new()), ("dü".to_owned(), knots)] }
    }

    #[test]
    fn the_clocks_come_back_from_their_bytes() {
        let function = GlobalNs::new(times());
        let mut bytes = Vec::new();
        function.encode(&mut bytes);
        assert_eq!(GlobalNs::decode(&bytes), Some(function));
        for length in 1..bytes.len() {
            // What was cut off between two hosts is a shorter list.
            let shorter = GlobalNs::decode(&bytes[..length]);
            assert!(shorter.is_none_or(|shorter| shorter.times.hosts.len() < 2));
        }
    }
}
