#!/usr/bin/env bash
# Call F, under ten minutes: the tensorflow engine of an unpacked bundle on TensorFlow's library for GPUs,
# and both engines for GPUs on the same cases, in one table.
#
#   GPU_WHEELS    folder of TensorFlow's wheels, and of those of CUDA (default: wheels beside the scripts)
#   GPU_BINDING   sagitta-tensorflow-binding.tar.gz (default: beside the scripts)
#   GPU_VARIANT   gpu (default) or cpu
#   GPU_INDEX     not empty: without wheels, download TensorFlow from pip's index, and the binding from npm's
#
# Estimates for an H200, in seconds: unpacking 3 GB of wheels 90, self-test 60, the cases of both engines 170:
# together 320.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin f-tensorflow 590

bundle="$(find_bundle)"
sagitta="$bundle/bin/sagitta"
wheels="${GPU_WHEELS:-$here/wheels}"
binding="${GPU_BINDING:-$here/sagitta-tensorflow-binding.tar.gz}"
selftest=() bench=(--full)
if [ -n "$small" ]; then selftest=(--case 'page by page') bench=(); fi

install=("$bundle/runtime/node" "$bundle/scripts/install-tensorflow.mjs" --variant "${GPU_VARIANT:-gpu}")
if [ -d "$bundle/build/tensorflow" ]; then
  skip tensorflow-install 'TensorFlow is installed already'
elif [ -d "$wheels" ] && [ -f "$binding" ]; then
  step tensorflow-install 240 "${install[@]}" --wheels "$wheels" --binding "$binding"
elif [ -n "${GPU_INDEX:-}" ]; then
  step tensorflow-install 300 "${install[@]}"
else
  skip tensorflow-install "there is no $wheels or no $binding; docs/gpu.md says how to make them"
fi
if [ -d "$bundle/build/tensorflow" ]; then
  step tensorflow-selftest 150 "$sagitta" selftest --engine tensorflow "${selftest[@]}"
else
  skip tensorflow-selftest 'TensorFlow is not installed'
fi
step engines 300 env -u SAGITTA_BENCH_PYTHON "$sagitta" bench gpu-engines "${bench[@]}"
