#!/bin/sh
# Draws the pictures of the README: pages of the recorded session's HTML file, with headless Chromium.
#   tools/pictures.sh [KPROF]     KPROF: the command (default build/kprof)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
kprof=${1:-$root/build/kprof}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$kprof" report --html "$work/report.html" "$root/examples/h200-demo.kprof"
picture() { # NAME ADDRESS WIDTH,HEIGHT
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$3" \
        --screenshot="$work/$1.png" "file://$work/report.html$2" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    mv "$work/$1.png" "$root/examples/pictures/$1.png"
}
mkdir -p "$root/examples/pictures"
picture overview '' 1280,720
picture launch '#/launch/1' 1280,1000
picture source '#/source/0' 1280,900
