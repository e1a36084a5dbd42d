#!/bin/sh
# Keeps the pod that brings code to a volume, and ends when nothing has come for AJ_IDLE seconds.
#
# Whoever receives in this pod makes AJ_FOLDER/.beat again and again; each time it is found here it goes.
set -u
trap 'exit 0' HUP INT TERM
left=$AJ_IDLE
while [ "$left" -gt 0 ]; do
  sleep 5 &
  wait "$!"
  left=$((left - 5))
  if rm "$AJ_FOLDER/.beat" 2>/dev/null; then
    left=$AJ_IDLE
  fi
done
printf 'nothing has come for %s s\n' "$AJ_IDLE" >&2
exit 1
