#!/bin/sh
# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
# Tidies a tree of unpacked packages in the current folder, with tools of any POSIX system:
#   unpack.sh KEEP EXCLUDE
# Both are shell patterns, separated by "|", on paths like usr/bin/clang; "*" matches "/" too.
# Files that match no KEEP pattern (when there are some) or an EXCLUDE pattern are removed.
# Absolute links are made relative to the tree; links that lead nowhere are removed.
set -eu
keep=$1
exclude=$2

matches() { # PATH PATTERNS
    [ -n "$2" ] || return 1
    eval "case \$1 in $2) return 0 ;; esac"
    return 1
}

if [ -n "$keep$exclude" ]; then
    find . ! -type d | while IFS= read -r file; do
        path=${file#./}
        if { [ -n "$keep" ] && ! matches "$path" "$keep"; } || matches "$path" "$exclude"; then
            printf '%s\0' "$file"
        fi
    done | xargs -0 rm -f
fi

find . -type l | while IFS= read -r link; do
    target=$(readlink "$link")
    case $target in
    "$PWD"/*) target=${target#"$PWD"} ;;
    /*) ;;
    *) continue ;;
    esac
    up=$(printf '%s' "${link#./}" | sed 's|[^/]*$||; s|[^/]*/|../|g')
    ln -sfn "$up${target#/}" "$link"
done
find . -type l | while IFS= read -r link; do
    [ -e "$link" ] || rm -f "$link"
done

find . -depth -type d -exec rmdir {} + 2>/dev/null || :
