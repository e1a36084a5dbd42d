#!/bin/sh
# Takes a file in parts and puts it in its place once it is whole. Runs in the pod that brings code to a volume.
#
#     sh receive.sh FOLDER NAME SIZE SHA256
#
# FOLDER is made if need be, for its owner alone; so is the folder above it, in which everybody may make one. What
# has come of the file lies beside it under another name, and stays there when this ends early: the next one goes on.
#
# First it says    have              the file is there already, and nothing else is wanted
#                  at TOTAL          so many bytes are there: go on behind them
# Then it hears    put COUNT         so many bytes follow, and not one more is read; it says `at TOTAL` as they come,
#                                    then `part TOTAL SHA256`, which is that of these bytes alone
#                  cut TOTAL         drop what lies behind so many bytes; it says `at TOTAL`
#                  end               says `done` when the whole file is in its place, or `wrong SHA256` when it is
#                                    not the one that was meant, and is gone
# While it computes a sum for long it says `busy`. Its ways out: 0 done, 1 in words on stderr, 3 nothing more came.
set -u
umask 077
LC_ALL=C
export LC_ALL

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

size_of() { # FILE, sets size; by the listing, because some programs would read the whole file for it
  # shellcheck disable=SC2012 # the name is ours, and the fields before it are what is wanted
  listed=$(ls -ln "$1" 2>/dev/null) || listed='- - - - 0'
  # shellcheck disable=SC2086 # fields are what is wanted
  set -- $listed
  size=$5
}

# Sums of large files take minutes, and who waits must hear that this lives.
sum_of() { # FILE, sets sum
  trap - TERM # a child that is told to end before it has dropped this trap would never hear it
  (
    while sleep 5 >/dev/null 2>&1; do
      printf 'busy\n'
      : >"$beat"
    done
  ) &
  ticking=$!
  trap 'exit 1' TERM
  sum=$(sha256sum <"$1")
  sum=${sum%% *}
  kill -9 "$ticking" 2>/dev/null # a shell that was just begun may lose any other word
  wait "$ticking" 2>/dev/null
  [ -n "$sum" ] || die "no sum could be made of $1"
}

folder=$1 name=$2 whole=$3 expected=$4
part=$folder/.$expected.part
beat=$folder/.beat
above=${folder%/*}
# The folder of all jobs is open to all users of the volume, as /tmp is; each of them is closed to the others.
[ -d "$above" ] || { mkdir "$above" && chmod 1777 "$above"; } 2>/dev/null
[ -d "$folder" ] || mkdir "$folder" 2>/dev/null
if [ -L "$folder" ] || [ ! -d "$folder" ]; then
  die "$folder cannot be made on the volume"
fi
chmod 700 "$folder" 2>/dev/null || die "$folder belongs to another user of the volume"
: >"$beat" || die "nothing can be written in $folder"
trap 'rm -f "$beat"' EXIT
trap 'exit 1' HUP INT TERM

if [ -f "$folder/$name" ]; then
  size_of "$folder/$name"
  if [ "$size" = "$whole" ]; then
    sum_of "$folder/$name"
    if [ "$sum" = "$expected" ]; then
      rm -f "$part" "$beat"
      printf 'have\n'
      exit 0
    fi
  fi
fi

cut_at() { # TOTAL
  dd if=/dev/null of="$part" bs=1 seek="$1" 2>/dev/null || die "$part cannot be cut"
}

take() { # BLOCK COUNT
  said=$(dd bs="$1" count="$2" iflag=fullblock 2>&1 >>"$part") || die "the volume does not take it: ${said%%"
"*}"
}

put() { # COUNT
  size_of "$part"
  total=$size left=$1
  while [ "$left" -ge 1048576 ]; do
    take 65536 16
    total=$((total + 1048576)) left=$((left - 1048576))
    printf 'at %s\n' "$total"
    : >"$beat"
  done
  [ "$left" -eq 0 ] || take "$left" 1
  total=$((total + left))
  size_of "$part"
  [ "$size" -ge "$total" ] || exit 3
  sum=$(tail -c "$1" "$part" | sha256sum)
  printf 'part %s %s\n' "$size" "${sum%% *}"
}

end() {
  size_of "$part"
  sum_of "$part"
  if [ "$size $sum" != "$whole $expected" ]; then
    rm -f "$part" "$beat"
    printf 'wrong %s\n' "$sum"
    exit 0
  fi
  mv -f "$part" "$folder/$name" || die "$folder/$name cannot be put in its place"
  rm -f "$beat" # before the last word: who hears it ends this pod at once
  printf 'done\n'
  exit 0
}

: >>"$part" || die "nothing can be written in $folder"
size_of "$part"
[ "$size" -le "$whole" ] || { cut_at 0 && size=0; }
printf 'at %s\n' "$size"
while read -r word number; do
  case $word in
    put) put "$number" ;;
    cut)
      cut_at "$number"
      printf 'at %s\n' "$number"
      ;;
    end) end ;;
    *) die "cannot make sense of $word" ;;
  esac
done
exit 3
