#!/bin/sh
# build.sh SOURCE TARGET: the wheel of SOURCE, with its core compiled, installed with all it needs into a new virtual
# environment at TARGET.
# The Dockerfile calls this, and so does check.sh, where there is no Docker.
set -eu
source=$1 target=$2
python=${PYTHON:-python3}
unset PYTHONPATH # what is installed is looked at, not what may lie elsewhere

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$source"
set -- "$work"/attributary-*.whl
# Not sklearn, onnx, mlflow, parquet: each adds some 60 to 200 MB. An image made from this one adds them (docs/compose.md).
"$python" -m venv "$target"
"$target/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir \
  --constraint "$source/deploy/image/constraints.txt" "$1[worker,object-store,avro,protobuf,served,serve]"
"$target/bin/python" -c 'import sys; from attributary_explainers.core import is_compiled; sys.exit(not is_compiled())' \
  || { echo "the core is not compiled: a C compiler is needed" >&2; exit 1; }
# A worker installs nothing.
"$target/bin/pip" uninstall --quiet --disable-pip-version-check --yes setuptools pip
