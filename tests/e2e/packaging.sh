#!/bin/sh
# make install, make uninstall and make deb: where they put files, and that these work there; and how many jobs make
# uses.
. "$(dirname "$0")/e2e.inc"
[ "${KP_TEST_VARIANT:-release}" = release ] || { echo "skipped: only the release build is installed"; exit 77; }
[ -e "$build/docs/kprof.1" ] || { echo "skipped: no $build/docs, run make docs"; exit 77; }
build=$(realpath "$build")
programs=$build/programs
export SOURCE_DATE_EPOCH=1700000000
version=$("$build/kprof" --version | cut -d' ' -f2)

quietly() {
    "$@" >"$tmp/said" 2>&1 && return
    fail "$*"
    sed 's/^/    /' "$tmp/said"
    return 1
}
in_make() { quietly make --no-print-directory -C "$source" "$@"; }
# Lines "MODE PATH" of all files below a folder.
files() { (cd "$1" && find . ! -type d -printf '%m %P\n' | sort -k2); }

# The installed command and library, below ROOT/PREFIX.
works() { # WHAT ROOT/PREFIX
    expect "$1: version" "$("$2/bin/kprof" --version 2>&1)" "kprof $version"
    "$2/bin/kprof" report "$source/examples/h200-demo.kprof" >"$tmp/installed" 2>&1
    "$build/kprof" report "$source/examples/h200-demo.kprof" >"$tmp/built" 2>&1
    [ "$(wc -l <"$tmp/built")" -gt 50 ] || fail "$1: the session has no report"
    cmp "$tmp/installed" "$tmp/built" || fail "$1: another report of a stored session"
    "$2/bin/kprof" report --section-folder "$2/share/doc/kprof/examples/sections" "$source/examples/h200-demo.kprof" \
        >/dev/null 2>"$tmp/said" || { fail "$1: the example of a section"; cat "$tmp/said"; }
    # A run finds the library that belongs to the command.
    LD_LIBRARY_PATH="$build/fake" "$2/bin/kprof" --log-file "$tmp/report" -- "$programs/p_direct" >/dev/null 2>"$tmp/said"
    grep -q 'launches seen' "$tmp/report" || { fail "$1: no report of a run"; cat "$tmp/said"; }
    rm -f "$tmp/report"
    links "$1" "$2/share/doc/kprof"
}

# What the installed documents link to is installed with them, and so are the sessions that their commands read.
links() { # WHAT FOLDER
    for file in $(cd "$2" && find . -name '*.md'); do
        for target in $(grep -oE '\]\([^)]+\)' "$2/$file" | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^http'); do
            [ -e "$2/$(dirname "$file")/$target" ] || fail "$1: $file links to $target, which is not installed"
        done
    done
    for session in $(grep -rohE --include='*.md' 'examples/[a-z0-9-]+\.kprof' "$2" | sort -u); do
        [ -e "$2/$session" ] || fail "$1: documents use $session, which is not installed"
    done
}

# --- how many jobs targets take that set all up by themselves: as many as the user has said ---
jobs() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$@" --no-print-directory -sC "$source" --eval 'said: ; @echo "jobs $(PARALLEL)"' said; }
expect "jobs: one was asked for" "$(jobs make -j1)" "jobs "
expect "jobs: two were asked for" "$(jobs make -j2)" "jobs "
expect "jobs: none were asked for" "$(jobs make)" "jobs -j$(nproc)"
expect "jobs: a variable is no answer" "$(jobs make OUT=jobserver)" "jobs -j$(nproc)"
mkdir "$tmp/fails"
printf '#!/bin/sh\nexit 1\n' >"$tmp/fails/nproc"
chmod +x "$tmp/fails/nproc"
expect "jobs: processors not known" "$(jobs env PATH="$tmp/fails:$PATH" make)" "jobs -j1"

# --- make install ---
mkdir "$tmp/dest"
in_make install DESTDIR="$tmp/dest" PREFIX=/opt/kprof
cat >"$tmp/wanted" <<'END'
755 bin/kprof
644 lib/libkprof-symbols.so
644 lib/libkprof.so
644 lib/pkgconfig/kprof.pc
644 share/bash-completion/completions/kprof
644 share/doc/kprof/CHANGELOG.md
644 share/doc/kprof/CONTRIBUTING.md
644 share/doc/kprof/LICENSE
644 share/doc/kprof/README.md
644 share/doc/kprof/docs/adding.md
644 share/doc/kprof/docs/architecture.md
644 share/doc/kprof/docs/calls.md
644 share/doc/kprof/docs/coming-from-ncu.md
644 share/doc/kprof/docs/coming-from-nsys.md
644 share/doc/kprof/docs/internals/counting.md
644 share/doc/kprof/docs/internals/gate.md
644 share/doc/kprof/docs/internals/journal.md
644 share/doc/kprof/docs/internals/modes.md
644 share/doc/kprof/docs/internals/session.md
644 share/doc/kprof/docs/kprof.schema.json
644 share/doc/kprof/docs/limits.md
644 share/doc/kprof/docs/locks.md
644 share/doc/kprof/docs/manual.md
644 share/doc/kprof/docs/performance.md
644 share/doc/kprof/docs/pytorch.md
644 share/doc/kprof/docs/removed.md
644 share/doc/kprof/docs/session.md
644 share/doc/kprof/docs/waits.md
644 share/doc/kprof/examples/README.md
644 share/doc/kprof/examples/fixes.cu
644 share/doc/kprof/examples/h200-demo.kprof
644 share/doc/kprof/examples/pictures/launch.png
644 share/doc/kprof/examples/pictures/overview.png
644 share/doc/kprof/examples/pictures/source.png
644 share/doc/kprof/examples/sections/tensor.section
644 share/doc/kprof/examples/transpose.cu
644 share/man/man1/kprof-diff.1
644 share/man/man1/kprof-doctor.1
644 share/man/man1/kprof-report.1
644 share/man/man1/kprof.1
644 share/man/man7/libkprof.7
644 share/zsh/site-functions/_kprof
END
files "$tmp/dest/opt/kprof" >"$tmp/got"
diff "$tmp/wanted" "$tmp/got" || fail "make install: other files, or other modes"
expect "files outside PREFIX" "$(cd "$tmp/dest" && find . ! -type d ! -path './opt/kprof/*')" ""
works "make install" "$tmp/dest/opt/kprof"
if command -v pkg-config >/dev/null; then
    from_pc() { PKG_CONFIG_LIBDIR="$tmp/dest/opt/kprof/lib/pkgconfig" pkg-config "$@" kprof 2>&1; }
    expect "kprof.pc: version" "$(from_pc --modversion)" "$version"
    expect "kprof.pc: library" "$(from_pc --variable=preload)" /opt/kprof/lib/libkprof.so
    expect "kprof.pc: nothing to link" "$(from_pc --cflags --libs | tr -d ' ')" ""
else
    echo "without pkg-config: kprof.pc is not read"
fi

# --- the command under the name ncu, beside the others' and never in their place ---
link=$tmp/dest/opt/kprof/libexec/kprof/bin/ncu
[ ! -e "$link" ] || fail "make install: a link named ncu that nobody asked for"
in_make install NCU_LINK=yes DESTDIR="$tmp/dest" PREFIX=/opt/kprof
LD_LIBRARY_PATH="$build/fake" "$link" -c 1 -- "$programs/p_direct" >"$tmp/said" 2>&1
grep -q '^==PROF== Connected' "$tmp/said" || { fail "make install: the link named ncu"; cat "$tmp/said"; }
expect "make install: links" "$(find "$tmp/dest" -type l)" "$link"

# --- make uninstall: what others have put beside ours stays ---
: >"$tmp/dest/opt/kprof/lib/other.so"
: >"$tmp/dest/opt/kprof/share/doc/kprof/other"
in_make uninstall DESTDIR="$tmp/dest" PREFIX=/opt/kprof
expect "left by uninstall" "$(files "$tmp/dest/opt/kprof" | cut -d' ' -f2 | xargs)" "lib/other.so share/doc/kprof/other"
rm "$tmp/dest/opt/kprof/share/doc/kprof/other"
in_make install DESTDIR="$tmp/dest" PREFIX=/opt/kprof
in_make uninstall DESTDIR="$tmp/dest" PREFIX=/opt/kprof
[ ! -e "$tmp/dest/opt/kprof/share/doc/kprof" ] || fail "uninstall leaves its own folder"

# --- make deb ---
if ! command -v dpkg-deb >/dev/null; then
    echo "without dpkg-deb: the package is not made"
    finish
fi
# The builder's umask must not show in it.
(umask 077 && DEB_LEVEL=0 in_make deb) || { failures=$((failures + 1)); finish; }
deb=$source/$(tail -n 1 "$tmp/said")

lintian_is_content() {
    # The maintainer is whoever makes the package.
    lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
        "$deb" || fail "lintian"
}
if command -v lintian >/dev/null; then
    beside lintian_is_content
else
    echo "without lintian: it does not look at the package"
fi

field() { dpkg-deb -f "$deb" "$1"; }
expect "Package" "$(field Package)" kprof
expect "Version" "$(field Version)" "$version"
expect "Architecture" "$(field Architecture)" "$(dpkg --print-architecture)"
expect "Depends" "$(field Depends)" "libc6 (>= 2.17)"
expect "Recommends" "$(field Recommends)" libdw1
dpkg-deb -c "$deb" | awk '{print $1, $2, $6}' >"$tmp/listed"
expect "modes and owners" "$(grep -vE '^(drwxr-xr-x|-rw-r--r--) root/root |^-rwxr-xr-x root/root ./usr/bin/kprof$' "$tmp/listed")" ""
# Stamped by its sources, not by when it was made.
expect "dates" "$(dpkg-deb -c "$deb" | awk '{print $4}' | sort -u)" "$(date -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)"
mkdir "$tmp/unpacked" "$tmp/scratch"
quietly dpkg-deb -R "$deb" "$tmp/unpacked"
(cd "$tmp/unpacked" && md5sum --quiet -c DEBIAN/md5sums) || fail "md5sums are wrong"
expect "files with a sum" "$(wc -l <"$tmp/unpacked/DEBIAN/md5sums")" "$(find "$tmp/unpacked/usr" -type f | wc -l)"
for page in man1/kprof.1 man1/kprof-report.1 man1/kprof-diff.1 man1/kprof-doctor.1 man7/libkprof.7; do
    gzip -dc "$tmp/unpacked/usr/share/man/$page.gz" | cmp - "$build/docs/${page#*/}" || fail "the package's $page"
done

# Stripping is the last that happens to them.
quietly "$source/tools/check_abi.sh" "$tmp/unpacked/usr/lib/libkprof.so" "$tmp/unpacked/usr/bin/kprof" \
    "$tmp/unpacked/usr/lib/libkprof-symbols.so"

# Installed by dpkg into a root of its own, or where only root may do that unpacked.
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$tmp/scratch/var/lib/dpkg/info" "$tmp/scratch/var/lib/dpkg/updates" "$tmp/scratch/var/lib/dpkg/triggers"
    : >"$tmp/scratch/var/lib/dpkg/status"
    # The root has no libc6, and no ldconfig to be triggered.
    quietly dpkg --root="$tmp/scratch" --log="$tmp/dpkg.log" --force-depends --no-triggers -i "$deb"
    expect "dpkg's state" "$(dpkg-query --admindir="$tmp/scratch/var/lib/dpkg" -W -f '${db:Status-Abbrev}' kprof)" "ii "
    works "the package" "$tmp/scratch/usr"
    quietly dpkg --root="$tmp/scratch" --log="$tmp/dpkg.log" --no-triggers -P kprof
    expect "left by its removal" "$(cd "$tmp/scratch" && find . ! -type d ! -path './var/*')" ""
else
    quietly dpkg-deb -x "$deb" "$tmp/scratch"
    works "the package" "$tmp/scratch/usr"
fi

finish
