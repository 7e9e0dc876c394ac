#!/bin/sh
# Installs threadbox on a Linux machine. It runs nothing that it has fetched before its SHA-256 is the one of SHA256SUMS.
#
#   THREADBOX_BASE_URL   where the files of a release are, as `scripts/package` makes them. Required
#   THREADBOX_SHA256     the SHA-256 of the archive, for who has it from elsewhere; otherwise SHA256SUMS of the same place says it
#   THREADBOX_PREFIX     what is installed goes into its bin/ and share/. Default: /usr/local for root, else ~/.local
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}
fetch() { # URL FILE
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1" || fail "cannot fetch $1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "cannot fetch $1"
  else
    fail 'it needs curl or wget'
  fi
}

# All in one function: half of a script that was cut off on its way does nothing.
install_threadbox() {
  base=${THREADBOX_BASE_URL:-}
  [ -n "$base" ] || fail 'set THREADBOX_BASE_URL to where the files of a release are'
  base=${base%/}
  case $base in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]* | http://\[::1\][:/]*) ;;
    *) fail "THREADBOX_BASE_URL must begin with https://, not $base" ;;
  esac
  [ "$(uname -s)" = Linux ] || fail "threadbox runs on Linux, and this is $(uname -s)"
  case $(uname -m) in
    x86_64 | amd64) name=threadbox-linux-x64 ;;
    aarch64 | arm64) name=threadbox-linux-arm64 ;;
    *) fail "threadbox runs on x86_64 and arm64, and this is $(uname -m)" ;;
  esac
  if [ -n "${THREADBOX_PREFIX:-}" ]; then
    prefix=$THREADBOX_PREFIX
  elif [ "$(id -u)" = 0 ]; then
    prefix=/usr/local
  else
    prefix=$HOME/.local
  fi

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
  sum=${THREADBOX_SHA256:-}
  if [ -z "$sum" ]; then
    fetch "$base/SHA256SUMS" "$work/SHA256SUMS"
    sum=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
    [ -n "$sum" ] || fail "$base/SHA256SUMS does not name $name.tar.gz"
  fi
  fetch "$base/$name.tar.gz" "$work/archive"
  echo "$sum  $work/archive" | sha256sum --check --status - || fail "$base/$name.tar.gz is not what its SHA-256 says. Nothing was installed"

  tar -xzf "$work/archive" -C "$work" --no-same-owner
  # Tried before it takes the place of one that works.
  version=$("$work/$name/threadbox" version) || fail 'it does not run here: it needs glibc 2.34 or newer'
  mkdir -p "$prefix/bin"
  cp -R "$work/$name/share" "$prefix/"
  # Replaced whole: a server may be running from the old one.
  cp "$work/$name/threadbox" "$prefix/bin/.threadbox.$$"
  chmod 755 "$prefix/bin/.threadbox.$$"
  mv -f "$prefix/bin/.threadbox.$$" "$prefix/bin/threadbox"
  echo "threadbox $version is installed: $prefix/bin/threadbox"
  case :$PATH: in *":$prefix/bin:"*) ;; *) echo "Put $prefix/bin into your PATH." ;; esac
}
install_threadbox
