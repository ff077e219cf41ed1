#!/usr/bin/env bash
# Runs the fuzz targets of fuzz/, each for SECONDS, with the stable compiler: libFuzzer needs only the
# compiler's coverage pass, not nightly's sanitizers. Findings go to fuzz/artifacts, the corpus to
# fuzz/corpus; both stay for the next run. Ends with status 1 at the first input that fails.
#
# usage: fuzz.sh [SECONDS [TARGET...]]    (default: 120 seconds, all targets)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"
seconds=${1:-120}
targets=("${@:2}")
if ((${#targets[@]} == 0)); then targets=(counters damaged fleet forged profile pulled saved segment spans); fi
if ! command -v c++ >/dev/null; then
	echo "fuzz: libFuzzer is C++: install g++ or clang" >&2
	exit 2
fi

host=$(rustc -vV | sed -n 's/^host: //p')
# As cargo-fuzz sets them without a sanitizer. With --target, build scripts are spared.
export RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
../scripts/cargo.sh build --release --locked --target "$host" --bins
for target in "${targets[@]}"; do
	mkdir -p "corpus/$target" "artifacts/$target"
	echo "fuzz: $target for $seconds s"
	"target/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="artifacts/$target/" "corpus/$target"
done
