#!/bin/sh
# Usage: content_hash.sh FILE
# Prints the file's SHA-256 in base 64, as content security policies write it.
set -eu
# The shell's own printf may not know \x.
env printf "$(sha256sum "$1" | cut -c1-64 | sed 's/../\\x&/g')" | base64
