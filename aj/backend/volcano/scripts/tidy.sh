#!/bin/sh
# Lists or removes the code of jobs on a volume. Runs in the pod that brings code there.
#
#     sh tidy.sh list FOLDER           a line for each folder of a job in FOLDER: its id, and its age in seconds
#     sh tidy.sh remove FOLDER ID …    removes those; one that is not there is no fault
#
# Nothing but folders that are named by an id, eight hex digits, is ever looked at.
set -u
LC_ALL=C
export LC_ALL

is_id() {
  case $1 in
    *[!0-9a-f]*) return 1 ;;
    ????????) return 0 ;;
  esac
  return 1
}

act=$1 folder=$2
shift 2
case $act in
  list)
    now=$(date +%s)
    for found in "$folder"/????????; do
      id=${found##*/}
      if [ -d "$found" ] && [ ! -L "$found" ] && is_id "$id" && made=$(stat -c %Y "$found" 2>/dev/null); then
        printf '%s %s\n' "$id" "$((now - made))"
      fi
    done
    ;;
  remove)
    status=0
    for id in "$@"; do
      if ! is_id "$id" || [ -L "$folder/$id" ]; then
        printf '%s is no folder of a job\n' "$id" >&2
        status=1
      else
        rm -rf "${folder:?}/$id" || status=1
      fi
    done
    exit "$status"
    ;;
esac
