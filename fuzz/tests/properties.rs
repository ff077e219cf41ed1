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
}
