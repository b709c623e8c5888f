#!/bin/bash
# Usage: root.sh make SUITE ROOT            makes a bare Debian in the folder ROOT: nothing but git, make and certificates
#        root.sh copy ROOT USER FOLDER      puts a clone of this repository's commit at FOLDER in there, the user's own
#        root.sh run ROOT USER COMMAND...   runs the command in there, with a clean environment
# Run as root. The root is told what the machine's apt and pip are told: Debian's mirrors, keys, certificates, proxies. Mounts
# are made in a namespace of the command's own. They go with its last process, and no `rm -rf ROOT` ever meets one.
set -euo pipefail
source=$(realpath "$(dirname "$0")/..")

give_up() {
    echo "root: $*" >&2
    exit 1
}

# A line "MIRROR SUITE COMPONENT" for each list of Debian's packages that the machine's apt reads.
lists() {
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | sort -u
}

own_suite() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

tell_apt() { # SUITE ROOT
    lists | sed "s/^\([^ ]* \)$(own_suite)/deb \1$1/" >"$2/etc/apt/sources.list"
    for keys in /etc/apt/trusted.gpg.d /etc/apt/keyrings /usr/share/keyrings; do
        find "$keys" -name '*.asc' -o -name 'debian*.gpg' 2>/dev/null | xargs -r cp -t "$2/etc/apt/trusted.gpg.d"
    done
    # Not those that run the machine's own programs.
    grep -LE 'Invoke|Pre-Install-Pkgs' /etc/apt/apt.conf.d/* | xargs -r cp -t "$2/etc/apt/apt.conf.d"
}

tell_rest() { # ROOT
    cp /etc/hosts /etc/resolv.conf "$1/etc"
    mkdir -p "$1/etc/xdg/pip"
    cp /etc/pip.conf "$1/etc" 2>/dev/null || :
    cp ~/.config/pip/pip.conf "$1/etc/xdg/pip" 2>/dev/null || :
    find /usr/local/share/ca-certificates -name '*.crt' 2>/dev/null | xargs -r cp -t "$1/usr/local/share/ca-certificates"
    run "$1" root update-ca-certificates >/dev/null 2>&1
}

bootstrap() { # SUITE ROOT MIRROR
    rm -rf "$2"
    unshare --mount debootstrap --variant=minbase --include=git,make,ca-certificates "$1" "$2" "$3" >"$2.log" 2>&1
}

make_root() { # SUITE ROOT
    local mirror try
    mkdir -p "$(dirname "$2")"
    mirror=$(lists | sed -n "s/ $(own_suite) main\$//p" | head -n 1)
    [ -n "$mirror" ] || give_up "the machine's apt reads no list of a Debian (apt-get update?)"
    command -v debootstrap >/dev/null || apt-get install -y -q --no-install-recommends debootstrap >"$2.log" 2>&1 ||
        give_up "cannot install debootstrap: $(tail -n 1 "$2.log")"
    unshare --mount true 2>"$2.log" || give_up "this machine lets nobody mount what a root needs: $(cat "$2.log")"
    # A mirror has a bad moment now and then.
    for try in 1 2 3; do
        ! bootstrap "$1" "$2" "$mirror" || break
        [ $try -lt 3 ] || give_up "debootstrap: $(tail -n 1 "$2.log")"
        sleep 10
    done
    rm "$2.log"
    tell_apt "$1" "$2"
    tell_rest "$2"
    run "$2" root apt-get -q update >/dev/null
}

# In a mount namespace. The devices of every container, and none that the machine has beside them.
mount_all() { # ROOT
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mount -t tmpfs -o mode=755 dev "$1/dev"
    mkdir "$1/dev/pts" "$1/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$1/dev/pts"
    mount -t tmpfs -o mode=1777 shm "$1/dev/shm"
    for device in null zero full random urandom tty; do
        : >"$1/dev/$device"
        mount --bind "/dev/$device" "$1/dev/$device"
    done
    ln -s pts/ptmx "$1/dev/ptmx"
    ln -s /proc/self/fd "$1/dev/fd"
    ln -s fd/0 "$1/dev/stdin"
    ln -s fd/1 "$1/dev/stdout"
    ln -s fd/2 "$1/dev/stderr"
}

run() { # ROOT USER COMMAND...
    unshare --mount --propagation private "$0" inside "$@"
}

inside() { # ROOT USER COMMAND...
    local root=$1 user=$2 home kept
    shift 2
    mount_all "$root"
    home=$(awk -F: -v user="$user" '$1 == user {print $6}' "$root/etc/passwd")
    readarray -d '' kept < <(env -0 | grep -zE '^(CI|WERROR|E2E_[A-Z]*|PIP_[A-Z_]*|[a-z]*_proxy|[A-Z]*_PROXY|SSL_CERT_[A-Z]*)=')
    exec env -i "${kept[@]}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" TERM=dumb \
        chroot "$root" setpriv --reuid="$user" --regid="$user" --init-groups "$@"
}

copy() { # ROOT USER FOLDER
    git clone -q --no-hardlinks "$source" "$1/$3"
    chown -R "$(awk -F: -v user="$2" '$1 == user {print $3 ":" $4}' "$1/etc/passwd")" "$(dirname "$1/$3")"
}

[ "$(id -u)" -eq 0 ] || give_up "needs root, to mount"
verb=$1
shift
case $verb in
make) make_root "$@" ;;
copy) copy "$@" ;;
run) run "$@" ;;
inside) inside "$@" ;;
*) give_up "no verb $verb" ;;
esac
