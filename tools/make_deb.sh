#!/bin/sh
# Usage: make_deb.sh TREE VERSION OUTPUT-FOLDER
# Makes a Debian package of what `make install` with PREFIX=/usr has put into TREE. The same tree and SOURCE_DATE_EPOCH
# give the same package, byte for byte. DEBFULLNAME and DEBEMAIL name its maintainer, DEB_LEVEL sets the compression
# level.
set -eu
export LC_ALL=C
umask 022
tree=$1
version=$2
output=$3
packaging=$(dirname "$0")/../packaging
maintainer="${DEBFULLNAME:-libkprof maintainers} <${DEBEMAIL:-kprof@localhost}>"

command -v dpkg-deb >/dev/null || { echo "make_deb: needs dpkg-deb" >&2; exit 1; }
architecture=$(dpkg --print-architecture)
package=$output/kprof_${version}_$architecture.deb
doc=$tree/usr/share/doc/kprof

strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/kprof" \
    "$tree/usr/lib/libkprof.so" "$tree/usr/lib/libkprof-symbols.so"
gzip -9n "$tree"/usr/share/man/man*/*

# Debian's own file in place of the licence, and its companions.
rm "$doc/LICENSE"
install -m 644 "$packaging/copyright" "$doc/copyright"
install -D -m 644 "$packaging/lintian-overrides" "$tree/usr/share/lintian/overrides/kprof"
cat > "$doc/changelog" <<END
kprof ($version) unstable; urgency=medium

  * Version $version.

 -- $maintainer  $(date -u -R -d "@${SOURCE_DATE_EPOCH:?}")
END
gzip -9n "$doc/changelog"

mkdir "$tree/DEBIAN"
echo activate-noawait ldconfig > "$tree/DEBIAN/triggers"
(cd "$tree" && find usr -type f | sort | xargs md5sum) > "$tree/DEBIAN/md5sums"
size=$(find "$tree/usr" -type f -printf '%s\n' | awk '{n += int(($1 + 1023) / 1024)} END {print n}')
sed "s|@VERSION@|$version|; s|@ARCHITECTURE@|$architecture|; s|@SIZE@|$size|; s|@MAINTAINER@|$maintainer|" \
    "$packaging/control.in" > "$tree/DEBIAN/control"

# xz: older systems cannot read the newer default compression.
dpkg-deb --root-owner-group -Zxz ${DEB_LEVEL:+-z"$DEB_LEVEL"} --build "$tree" "$package" >/dev/null
echo "$package"
