# shellcheck shell=bash
# Arguments: PATH DRAFT. Moves a draft to its path, with the owner and the mode of the file that is there. A file with other
# names, or one that is a mount point, is written in place. Exits with 45 and a reason when that is not possible.
target=$(readlink -m -- "$1") && [[ ! -d $target ]] || { echo "It is a directory: $1"; exit 45; }
[[ -e $target ]] || { chmod 644 -- "$2"; mv -T -- "$2" "$target" || exit 45; exit; }
[[ -s $target ]] && sync -- "$2"
[[ $(stat -c %h -- "$target") == 1 ]] && chown --reference "$target" -- "$2" && chmod --reference "$target" -- "$2" &&
  mv -T -- "$2" "$target" 2>/dev/null || cat -- "$2" >"$target" || exit 45
rm -f -- "$2"
