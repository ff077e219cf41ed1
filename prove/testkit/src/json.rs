//! Comparison of two reports in JSON.

use serde_json::Value;

/// Returns the first place where two values differ by more than rounding.
pub fn difference(left: &Value, right: &Value) -> Option<String> {
    let below = |name: String, left: &Value, right: Option<&Value>| match right {
        Some(right) => difference(left, right).map(|found| format!("{name}.{found}")),
        None => Some(name),
    };
    match (left, right) {
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            let mut pairs = left.iter();
            pairs.find_map(|(name, value)| below(name.clone(), value, right.get(name)))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().enumerate();
            pairs.find_map(|(index, value)| below(index.to_string(), value, right.get(index)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            ((a - b).abs() > 1e-9 * a.abs()).then(|| format!(" {a} {b}"))
        }
        _ => (left != right).then(|| format!(" {left} {right}")),
    }
}
