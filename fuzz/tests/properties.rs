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
