#!/usr/bin/env bash
# Checks the types, style and tests of the Python package with the interpreter named in SAGITTA_TEST_PYTHON. The tests
# start a server.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../../python"
python="${SAGITTA_TEST_PYTHON:?SAGITTA_TEST_PYTHON must name a Python with the packages of .ci/run}"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
"$python" -m mypy
"$python" -m ruff check .
"$python" -m ruff format --check .
timeout 900 "$python" -m pytest -q --durations=5
