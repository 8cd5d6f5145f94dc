#!/usr/bin/env bash
# Checks the Python package with the interpreter that SAGITTA_TEST_PYTHON names: types, lint, and tests on a server.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../../python"
python="${SAGITTA_TEST_PYTHON:?SAGITTA_TEST_PYTHON must name a Python with the packages of .ci/run}"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
"$python" -m mypy
"$python" -m ruff check .
"$python" -m ruff format --check .
timeout 900 "$python" -m pytest -q --durations=5
