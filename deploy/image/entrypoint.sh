#!/bin/sh
# The image has all kernels compiled, for any processor of its architecture. numba takes them only from a folder that it
# can write: so they are copied to the volume that may be mounted, or else to the folder for temporary files.
set -eu
for folder in "$NUMBA_CACHE_DIR" "${TMPDIR:-/tmp}/attributary"; do
  if mkdir -p "$folder" 2>/dev/null && cp -Ru "$(dirname "$0")/../kernels/." "$folder" 2>/dev/null; then
    export NUMBA_CACHE_DIR="$folder"
    break
  fi
done
exec attributary "$@"
