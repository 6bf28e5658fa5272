#!/usr/bin/env bash
# What the Dockerfile does, where there is no Docker: its files are copied into an empty folder, build.sh makes the
# environment, and the command runs in it as the image runs it: no home, no rights, nowhere to write but the cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/src" "$work/cache" "$work/tmp" "$work/empty" "$work/etc"
chmod 1777 "$work/tmp"

sed -n '/--from/d; s/^COPY \(.*\) [^ ]*$/\1/p' deploy/image/Dockerfile | tr ' ' '\n' | while read -r path; do
  cp -R --parents "$path" "$work/src"
done
find "$work/src" -name __pycache__ -prune -exec rm -rf {} +
echo "sources: $(cd "$work/src" && ls | tr '\n' ' ')"

(cd "$work/src" && deploy/image/build.sh . "$work/attributary")
# As a layer of an image keeps it: with times in whole seconds.
tar -C "$work" --format=ustar -cf "$work/layer.tar" attributary
rm -rf "$work/attributary"
tar -C "$work" -xf "$work/layer.tar"
rm "$work/layer.tar"
size=$(du -sm "$work/attributary" | cut -f1)
echo "environment: $size MB"

# Everything that is installed is pinned. UPDATE=1 pins what pip takes now.
installed() {
  "$work/attributary/bin/python" -c "
from importlib.metadata import distributions
print(*sorted(f'{d.name}=={d.version}' for d in distributions() if d.name != 'attributary'), sep='\n')"
}
pins=deploy/image/constraints.txt
if [ -n "${UPDATE:-}" ]; then
  { grep '^#' $pins; installed; } >"$work/pins"
  cp "$work/pins" $pins
fi
of_image=$(sed -n 's/^FROM python:\(3\.[0-9]*\).*/\1/p' deploy/image/Dockerfile | tail -1)
of_ours=$("$work/attributary/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$of_image" = "$of_ours" ]; then
  diff <(grep -v '^#' $pins) <(installed) >&2 || { echo "$pins is not what is installed: UPDATE=1 $0" >&2; exit 1; }
else
  echo "pins: not compared, this is Python $of_ours and the image has $of_image"
fi

# The image's user where we can become it and it can read our Python; in any case without root's rights over files.
drop=()
if [ "$(id -u)" = 0 ]; then
  drop=(setpriv --bounding-set=-all --inh-caps=-all)
  if setpriv --reuid=10001 --regid=10001 --clear-groups env "$work/attributary/bin/python" -c '' 2>/dev/null; then
    drop+=(--reuid=10001 --regid=10001 --clear-groups)
    chown 10001:10001 "$work/cache"
  else
    echo "user: 0, without capabilities: another user cannot read this Python"
  fi
fi
chmod 555 "$work/empty"
attributary() {
  (cd "$work/empty" && "${drop[@]}" env -i PATH="$work/attributary/bin:/usr/bin:/bin" PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 TMPDIR="$work/tmp" attributary "$@")
}

attributary --version
attributary check --help >/dev/null
attributary serve --help >/dev/null
attributary config example >"$work/etc/attributary.yaml"
attributary config show --config "$work/etc/attributary.yaml" >/dev/null
# One model learns and is explained; what a replay writes goes to the cache.
"$work/attributary/bin/python" - >"$work/etc/rows.jsonl" <<'PYTHON'
import json
from river.datasets import synth
for x, y in synth.Agrawal(classification_function=1, seed=1).take(300):
    print(json.dumps({"x": x, "y": y}))
PYTHON
attributary replay "$work/etc/rows.jsonl" --config "$work/etc/attributary.yaml" --out "$work/cache/out"
left=$(find "$work/empty" -mindepth 1)
[ -z "$left" ] || { echo "written into the working directory: $left" >&2; exit 1; }
# Without a broker it is the user's fault, in one line.
status=0
attributary topics create --config "$work/etc/attributary.yaml" 2>"$work/etc/error" || status=$?
[ $status = 2 ] || { echo "topics create without a broker ended with $status" >&2; cat "$work/etc/error" >&2; exit 1; }
echo "ok"
