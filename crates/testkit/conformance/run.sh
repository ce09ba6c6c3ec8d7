#!/usr/bin/env bash
# The stock clients against a real server: installs them, starts insula with the example tenants, runs every suite here and
# stops it. Needs Python 3.10 or newer; everything installed lies under target/.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=target/conformance
mkdir -p "$work"

cargo build --release --bin insula

if ! cmp -s crates/testkit/conformance/requirements.txt "$work/installed.txt"; then
    rm -rf "$work/venv"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r crates/testkit/conformance/requirements.txt
    cp crates/testkit/conformance/requirements.txt "$work/installed.txt"
fi

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

for suite in crates/testkit/conformance/suite_*.py; do
    echo "-- $(basename "$suite")"
    "$work/venv/bin/python" "$suite" "$address"
done
