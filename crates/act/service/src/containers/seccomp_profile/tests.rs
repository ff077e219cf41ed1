//! A derived profile says the same of every call, but for the notified ones.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The rules for a call, in their order: the action of each, and all that it depends on.
fn rules(profile: &Value, call: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for rule in profile["syscalls"].as_array().into_iter().flatten() {
        let names = rule["names"].as_array().into_iter().flatten();
        if names.chain([&rule["name"]]).any(|name| name == call) {
            let mut depends = rule.clone();
            for name in ["name", "names", "action"] {
                depends.as_object_mut().unwrap().remove(name);
            }
            found.push((rule["action"].as_str().unwrap_or("").to_owned(), depends));
        }
    }
    found
}

/// The rules that change what becomes of a call: not those that say what is so anyway.
fn becomes(profile: &Value, call: &str) -> Vec<(String, Value)> {
    let mut found = rules(profile, call);
    found.retain(|(action, _)| profile["defaultAction"] != action.as_str());
    found
}

fn called(profile: &Value) -> BTreeSet<String> {
    let rules = profile["syscalls"].as_array().into_iter().flatten();
    let names = rules.flat_map(|rule| {
        let names = rule["names"].as_array().into_iter().flatten();
        names.chain([&rule["name"]]).filter_map(Value::as_str)
    });
    names.map(ToOwned::to_owned).collect()
}

/// Checks all that is claimed of a derived profile.
fn check(before: &Value, after: &Value) {
    for call in called(before).union(&called(after)) {
        let (before, after) = (becomes(before, call), becomes(after, call));
        if !NAMES.contains(&call.as_str()) {
            assert_eq!(before, after, "{call}");
            continue;
        }
        assert!(!after.is_empty() && after.iter().all(|(action, _)| action == NOTIFY));
        // Allowed by default, or under the same conditions.
        let conditions = |all: &[(String, Value)]| -> Vec<Value> {
            all.iter().map(|(_, depends)| depends.clone()).collect()
        };
        assert!(before.iter().all(|(action, _)| action == ALLOW));
        if !before.is_empty() {
            assert_eq!(conditions(&before), conditions(&after));
        }
    }
    let without = |profile: &Value| {
        let mut fields = profile.as_object().unwrap().clone();
        for name in PROFILE_FIELDS {
            fields.remove(*name);
        }
        fields
    };
    assert_eq!(without(before), without(after));
    assert_eq!(after["defaultAction"], before["defaultAction"]);
    assert_eq!(after["listenerPath"], SOCKET);
    let flags: Vec<&str> =
        after["flags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(flags.contains(&FLAG), "{flags:?}");
    match before["flags"].as_array() {
        None => assert!(flags.contains(&USUAL_FLAG)),
        Some(own) => assert!(own.iter().all(|flag| flags.contains(&flag.as_str().unwrap()))),
    }
}

fn derived(before: &Value) -> Result<Value, ProfileError> {
    derive(&before.to_string())
}

/// Profiles that are mostly right.
fn profiles() -> impl Strategy<Value = Value> {
    const CALLS: [&str; 5] = ["fsync", "fdatasync", "read", "clone", "bpf"];
    const ACTIONS: [&str; 5] = [ALLOW, ALLOW, ALLOW, "SCMP_ACT_ERRNO", "SCMP_ACT_LOG"];
    let call = prop::sample::select(CALLS.to_vec());
    let conditions = prop::sample::select(vec![
        json!({}),
        json!({ "args": null, "comment": "x" }),
        json!({ "args": [], "includes": { "caps": ["CAP_SYS_ADMIN"] }, "excludes": {} }),
        json!({ "includes": { "arches": ["amd64"] }, "unknown": [1, { "y": -2.5 }] }),
        json!({ "args": [{ "index": 0, "value": u64::MAX, "valueTwo": 0, "op": "SCMP_CMP_EQ" }] }),
    ]);
    let action = prop::sample::select(ACTIONS.to_vec());
    let names = prop::collection::vec(call.clone(), 0..4);
    let rule = (names, call, any::<bool>(), action, conditions);
    let rule = rule.prop_map(|(names, name, is_old, action, mut rule)| {
        let fields = rule.as_object_mut().unwrap();
        fields.insert("action".to_owned(), action.into());
        if is_old {
            fields.insert("name".to_owned(), name.into());
        } else {
            fields.insert("names".to_owned(), names.into());
        }
        rule
    });
    let flags = prop::sample::select(vec![json!(null), json!([]), json!([FLAG]), json!(["X"])]);
    let rules = prop::collection::vec(rule, 0..8);
    let action = prop::sample::select(ACTIONS.to_vec());
    (rules, action, flags).prop_map(|(rules, default, flags)| {
        json!({ "defaultAction": default, "defaultErrnoRet": 38, "flags": flags, "archMap": [{ "z": 1 }],
                "syscalls": rules })
    })
}

/// Any JSON at all.
fn values() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(
        PROFILE_FIELDS
            .iter()
            .chain(RULE_FIELDS)
            .chain(&[ALLOW, NOTIFY, "fsync", "x"])
            .copied()
            .collect::<Vec<_>>(),
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(words.clone().prop_map(ToOwned::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_derived_profile_allows_what_the_other_one_allows(profile in profiles()) {
        if let Ok(after) = derived(&profile) {
            check(&profile, &after);
            prop_assert!(matches!(derived(&after), Err(ProfileError::Notifies(_))));
        } else {
            let is_usual = NAMES.iter().all(|call| {
                let all = rules(&profile, call);
                let allowed = all.iter().all(|(action, depends)| action == ALLOW && is_empty(depends.get("args")));
                allowed && (profile["defaultAction"] == ALLOW || !all.is_empty())
            });
            prop_assert!(!is_usual);
        }
    }

    #[test]
    fn no_file_makes_it_panic(value in values(), text in ".{0,200}") {
        if let Ok(after) = derived(&value) {
            check(&value, &after);
        }
        let _ = derive(&text);
    }
}

#[test]
fn rules_are_divided_and_keep_all_that_is_theirs() {
    let before = json!({
        "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "archMap": [{ "architecture": "SCMP_ARCH_X86_64" }],
        "syscalls": [
            { "names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1 },
            { "names": ["fdatasync", "fork", "fsync"], "action": ALLOW, "args": [], "comment": "c" },
            { "name": "fsync", "action": ALLOW, "includes": { "caps": ["CAP_BPF"] } },
        ],
    });
    let after = derived(&before).unwrap();
    check(&before, &after);
    assert_eq!(
        after["syscalls"],
        json!([
            { "names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1 },
            { "names": ["fork"], "action": ALLOW, "args": [], "comment": "c" },
            { "names": ["fdatasync", "fsync"], "action": NOTIFY, "args": [], "comment": "c" },
            { "names": ["fsync"], "action": NOTIFY, "includes": { "caps": ["CAP_BPF"] } },
        ])
    );
    assert_eq!(after["flags"], json!([USUAL_FLAG, FLAG]));
}

#[test]
fn where_all_is_allowed_one_rule_is_added() {
    let after = derived(&json!({ "defaultAction": ALLOW })).unwrap();
    assert_eq!(after["syscalls"], json!([{ "names": NAMES, "action": NOTIFY }]));
}

#[test]
fn what_cannot_be_changed_is_refused_in_one_line() {
    let rule = |rule: Value| json!({ "defaultAction": "SCMP_ACT_ERRNO", "syscalls": [rule] });
    for (profile, expected) in [
        (json!([]), "it is no object"),
        (json!({}), "no defaultAction"),
        (json!({ "defaultAction": NOTIFY }), "notifies a supervisor already"),
        (json!({ "defaultAction": ALLOW, "listenerPath": "/run/x" }), "listenerPath /run/x"),
        (rule(json!({ "names": ["read"], "action": NOTIFY })), "notifies a supervisor already"),
        (
            rule(json!({ "names": NAMES, "action": "SCMP_ACT_LOG" })),
            "SCMP_ACT_LOG is its action for fsync",
        ),
        (
            rule(json!({ "names": ["fsync"], "action": ALLOW })),
            "SCMP_ACT_ERRNO is its action for fdatasync",
        ),
        (
            rule(json!({ "names": NAMES, "action": ALLOW, "args": [{ "index": 0 }] })),
            "looks at arguments",
        ),
        (rule(json!({ "names": "fsync", "action": ALLOW })), "names are no list"),
        (rule(json!({ "names": [7], "action": ALLOW })), "one of its names is no text"),
        (rule(json!("fsync")), "a rule in its syscalls is no object"),
        (rule(json!({ "Names": NAMES, "action": ALLOW })), "has 'Names' for 'names'"),
        (json!({ "defaultAction": ALLOW, "Syscalls": [] }), "it has 'Syscalls' for 'syscalls'"),
        (json!({ "defaultAction": ALLOW, "flags": "x" }), "its flags are no list"),
    ] {
        let text = derived(&profile).unwrap_err().to_string();
        assert!(text.contains(expected) && !text.contains('\n'), "{text}");
    }
    let text = derive("{").unwrap_err().to_string();
    assert!(text.starts_with("it is not JSON (EOF"), "{text}");
}
