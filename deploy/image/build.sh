#!/bin/sh
# build.sh SOURCE TARGET: the wheel of SOURCE, installed with all it needs into a new virtual environment at TARGET, with
# all kernels compiled.
# The Dockerfile calls this, and so does check.sh, where there is no Docker.
set -eu
source=$1 target=$2
python=${PYTHON:-python3}
unset PYTHONPATH # kernels are those of the installed package, found by its path

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$source"
set -- "$work"/attributary-*.whl
# Not sklearn, onnx, mlflow, parquet: each adds some 60 to 200 MB. An image made from this one adds them (docs/compose.md).
"$python" -m venv "$target"
"$target/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir \
  --constraint "$source/deploy/image/constraints.txt" "$1[worker,object-store,avro,protobuf,served,serve]"
# numba knows by the time of a file whether its kernels are current, and the layers of an image keep whole seconds.
find "$target" -path '*/attributary_explainers/*.py' | while read -r file; do
  touch -d "@$(stat -c %Y "$file")" "$file"
done
NUMBA_CACHE_DIR="$target/kernels" NUMBA_CPU_NAME=generic "$target/bin/attributary" warm-up
cp "$source/deploy/image/entrypoint.sh" "$target/bin/attributary-entrypoint"
# A worker installs nothing.
"$target/bin/pip" uninstall --quiet --disable-pip-version-check --yes setuptools pip
