//! The fuzz targets with random input: what can be run without a fuzzer.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damaged(data in prop::collection::vec(any::<u8>(), 8..72)) {
        luc_fuzz::damaged(&data);
    }

    #[test]
    fn forged(data in prop::collection::vec(any::<u8>(), 8..72)) {
        luc_fuzz::forged(&data);
    }

    #[test]
    fn segment(data in prop::collection::vec(any::<u8>(), 0..512)) {
        luc_fuzz::segment(&data);
    }

    #[test]
    fn saved(data in prop::collection::vec(any::<u8>(), 0..512)) {
        luc_fuzz::saved(&data);
    }

    #[test]
    fn fleet(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        luc_fuzz::fleet(&data);
    }

    #[test]
    fn counters(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        luc_fuzz::counters(&data);
    }

    #[test]
    fn pulled(data in prop::collection::vec(any::<u8>(), 0..24)) {
        luc_fuzz::pulled(&data);
    }

    #[test]
    fn profile(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        luc_fuzz::profile(&data);
    }

    /// Random profiles that are nearly a runtime's.
    #[test]
    fn profile_of_rules(
        default in "SCMP_ACT_(ALLOW|ERRNO)|\\\\n|",
        rules in prop::collection::vec(
            "\\{\"names?\":(\"(fsync|read)\"|\\[(\"write\",)?\"(fsync|fdatasync)\"\\])(,\"action\":\"(SCMP_ACT_(ALLOW|ALLOW|LOG|NOTIFY)|\\\\u001b)\")?(,\"args\":(\\[\\]|null|\\[1\\]))?(,\"Action\":1)?\\}",
            0..4,
        ),
        more in "|,\"flags\":(\\[\\]|\\[1\\]|1|null)|,\"listenerPath\":\"(|/x\\\\n)\"",
    ) {
        let rules = rules.join(",");
        luc_fuzz::profile(format!("{{\"defaultAction\":\"{default}\",\"syscalls\":[{rules}]{more}}}").as_bytes());
    }

    #[test]
    fn spans(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        luc_fuzz::spans(&data);
    }

    /// Random spans that are nearly OpenTelemetry's.
    #[test]
    fn spans_of_members(
        members in prop::collection::vec(
            "\"(kind\":(2|3|\"SPAN_KIND_SERVER\")|name\":\"(a|\\\\u001b)\"|parentSpanId\":\"(|1|2)\"|attributes\":\\[\\{\"key\":\"network.peer.port\",\"value\":\\{\"intValue\":(5001|\"5002\"|-1)\\}\\}\\])",
            0..4,
        ),
        times in prop::collection::vec(0_u64..60, 2),
    ) {
        let span = |number: u32| {
            let times = format!("\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":{}", times[0], times[1]);
            let ids = format!("\"traceId\":\"{number}\",\"spanId\":\"{number}\"");
            let members = members.iter().map(|member| format!(",{member}"));
            format!("{{{ids},{times}{}}}", members.collect::<String>())
        };
        let spans = format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{},{}]}}]}}]}}", span(1), span(2));
        luc_fuzz::spans(spans.as_bytes());
    }

    /// Rows that are nearly perf's.
    #[test]
    fn counters_of_rows(
        rows in prop::collection::vec(
            "(1|2|3|x|9e99)(,CPU0|,S0,2|),(5|0|1e300|<not counted>|<not supported>|-1|nan),(msec|)?,(cycles|cycles:u|instructions|a/b=1,c/u|),(0|7|18446744073709551615|),(100.00|50.00|0.00|1e-9|200),,",
            0..40,
        )
    ) {
        luc_fuzz::counters(rows.join("\n").as_bytes());
    }
}
