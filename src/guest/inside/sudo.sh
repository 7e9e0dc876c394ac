#!/bin/sh
# Runs a program as root, or as another user. Whoever calls this has what it takes: see the guest of threadbox.
user=root
shell=
while [ $# -gt 0 ]; do
  case $1 in
  --) shift; break ;;
  -u | --user) user=$2; shift 2 ;;
  -u*) user=${1#-u}; shift ;;
  --user=*) user=${1#*=}; shift ;;
  -g | -p | -C | -r | -t | -T | -h) shift 2 ;;
  -s | -i | --shell | --login) shell=1; shift ;;
  -v | -k | -K | --validate) exit 0 ;;
  -V | --version) echo 'sudo of threadbox'; exit 0 ;;
  -*) shift ;;
  *=*) export "$1"; shift ;;
  *) break ;;
  esac
done
uid=$(id -u "$user") && gid=$(id -g "$user") || exit 1
home=$(sed -n "s|^$user:[^:]*:[^:]*:[^:]*:[^:]*:\([^:]*\):.*|\1|p" /etc/passwd | head -n 1)
export HOME="${home:-/}" USER="$user" LOGNAME="$user" SUDO_USER="${USER:-}" SUDO_UID="$(id -u)" SUDO_GID="$(id -g)"
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ -z "$shell" ] || set -- "${SHELL:-/bin/sh}" ${1:+-c} ${1:+"$*"}
[ $# -gt 0 ] || { echo 'usage: sudo [-u user] command' >&2; exit 1; }
exec setpriv --reuid="$uid" --regid="$gid" --init-groups -- "$@"
