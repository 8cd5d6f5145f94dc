#!/usr/bin/env bash
# Installs what the tests need besides npm packages: compilers, emulators, a browser and an object store from Debian, a
# NATS server into build/nats, Prometheus into build/prometheus, other versions of Node into the user's cache, and Python
# with libraries that read our files into the folder given as the argument. Fails if anything that every run needs is
# missing.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$1"
log="$folder/install.log"

debian=(g++ clang libclang-rt-14-dev systemd libsimde-dev g++-aarch64-linux-gnu qemu-user chromium faketime iproute2 procps
  ceph-mon ceph-osd radosgw)
missing=()
for package in "${debian[@]}"; do
  dpkg -s "$package" > /dev/null 2>&1 || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  timeout 300 apt-get update -qq >> "$log" 2>&1
  timeout 900 apt-get install -y -qq --no-install-recommends "${missing[@]}" >> "$log" 2>&1 ||
    { tail -n 20 "$log"; exit 1; }
fi
node scripts/install-nats.mjs
node scripts/install-prometheus.mjs
for version in 22 24; do
  timeout 300 npm install --prefix "$HOME/.cache/sagitta/node-$version" --no-audit --no-fund "node@$version" \
    >> "$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
done

if [ -z "${SAGITTA_TEST_PYTHON:-}" ]; then
  # If the index is unreachable, pip would otherwise retry for a minute per package.
  export PIP_RETRIES=0 PIP_DISABLE_PIP_VERSION_CHECK=1
  python3 -m venv "$folder/python"
  pip=("$folder/python/bin/pip" install --quiet)
  timeout 600 "${pip[@]}" pyarrow numpy polars duckdb h5py requests anyio hatchling 'httpx<1' hypothesis \
    mypy==2.4.0 pandas pytest==9.1.1 ruff==0.16.9 typing-extensions \
    jsonpatch langsmith packaging pydantic pyyaml tenacity uuid-utils >> "$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
  # Its vector stores need only the dependencies above.
  timeout 300 "${pip[@]}" --no-deps langchain-core >> "$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
  for package in ray dask; do
    timeout 300 "${pip[@]}" "$package" >> "$log" 2>&1 || echo "not available: $package"
  done
fi
for tool in g++ clang++ systemd-analyze aarch64-linux-gnu-g++ qemu-aarch64 chromium radosgw build/nats/nats-server \
  build/prometheus/prometheus build/prometheus/promtool; do
  command -v "$tool" > /dev/null || { echo "Expected $tool in PATH; found none"; exit 1; }
  echo "$tool: $("$tool" --version | head -n 1)"
done
