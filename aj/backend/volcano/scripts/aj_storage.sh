#!/usr/bin/env bash
# The storage of a pod: blob containers seen as folders, by blobfuse2, until the job ends.
#
# Reads    AJ_STORAGE (keys), and for each KEY AJ_STORAGE_ACCOUNT_KEY, _ENDPOINT_, _CONTAINER_, _FOLDER_, _MODE_ (rw, ro)
#          and _SAS_FILE_ (a file with a signature; it is a secret); AJ_BLOBFUSE2_MINIMUM (a version), AJ_BLOBFUSE2 (lines:
#          machine, SHA-256, address of a package), AJ_MOUNT_WAIT (seconds, 60), AJ_STORAGE_LOOK (seconds, 60: between
#          two looks at the signatures), AJ_FLUSH_WAIT (seconds, 900); aj_own (a folder that nobody else can enter)
# Ends     110 a value is missing, 116 blobfuse2 has another SHA-256, 117 there is nothing to download with,
#          118 something cannot be mounted
#
# A signature is never a word of a command: it stands in a file of settings in memory, which this user alone can read.
# shellcheck disable=SC2154 # the first part to run sets what all of them use

aj_storage_mount() { # for all keys; ends the pod when one of them cannot be mounted
  local aj_key aj_blobfuse='' aj_account aj_endpoint aj_container aj_folder aj_mode aj_sas_file aj_at
  aj_storage_folder
  for aj_key in $AJ_STORAGE; do aj_of_key "$aj_key"; done # what is missing is told before anything is made
  mkdir -m 700 "$aj_mounts" || aj_die 110 "the private folder $aj_mounts cannot be made"
  aj_find_blobfuse
  for aj_key in $AJ_STORAGE; do aj_mount_begin "$aj_key"; done
  for aj_key in $AJ_STORAGE; do aj_mount_wait "$aj_key"; done
}

aj_storage_folder() { # sets aj_mounts: in memory where there is some, because signatures lie there
  aj_mounts=/dev/shm/${aj_own##*/}
  [[ -d /dev/shm && -w /dev/shm ]] || aj_mounts=$aj_own/storage
}

aj_of_key() { # KEY, sets what is known of it
  local aj_word aj_name
  for aj_word in account endpoint container folder mode sas_file; do
    aj_name=AJ_STORAGE_${aj_word^^}_$1
    [[ -n ${!aj_name-} ]] || aj_die 110 "$aj_name is not set"
    printf -v "aj_$aj_word" %s "${!aj_name}"
  done
  aj_at=$aj_mounts/$1
}

aj_mount_begin() { # KEY
  local aj_account aj_endpoint aj_container aj_folder aj_mode aj_sas_file aj_at
  aj_of_key "$1"
  { mkdir -m 700 "$aj_at" && mkdir -p "$aj_own/storage/$1/cache"; } || aj_die 110 "the private folder $aj_at cannot be made"
  mkdir -p "$aj_folder" || aj_die 118 "the folder $aj_folder of storage $1 cannot be made"
  ! aj_is_mounted "$aj_folder" || aj_die 118 "something is mounted at $aj_folder already, where storage $1 should be"
  aj_write_settings "$1" || aj_die 118 "the signature of storage $1 in $aj_sas_file cannot be read"
  (
    "$aj_blobfuse" mount "$aj_folder" --config-file="$aj_at/settings.yaml" --foreground=true \
      >"$aj_own/storage/$1/words" 2>&1 </dev/null
    printf '%s\n' "$?" >"$aj_at/ended.part" && mv -f "$aj_at/ended.part" "$aj_at/ended"
  ) &
}

aj_write_settings() { # KEY; the file is there as a whole or not at all: blobfuse2 reads it again when it changes
  local aj_sas
  aj_sas=$(cat -- "$aj_sas_file" 2>/dev/null) && [[ -n $aj_sas ]] || return 1
  (
    umask 077
    printf '%s\n' 'allow-other: true' "read-only: $([[ $aj_mode == ro ]] && echo true || echo false)" \
      'logging:' '  type: base' '  level: log_warning' "  file-path: '$aj_own/storage/$1/log'" \
      "default-working-dir: '$aj_own/storage/$1'" \
      'components: [libfuse, file_cache, attr_cache, azstorage]' \
      'libfuse:' '  attribute-expiration-sec: 120' '  entry-expiration-sec: 120' '  negative-entry-expiration-sec: 240' \
      'file_cache:' "  path: '$aj_own/storage/$1/cache'" '  timeout-sec: 120' \
      'attr_cache:' '  timeout-sec: 7200' \
      'azstorage:' '  type: block' "  account-name: '$aj_account'" "  container: '$aj_container'" \
      "  endpoint: '$aj_endpoint'" '  mode: sas' "  sas: '$aj_sas'" >"$aj_at/settings.part"
  ) && mv -f "$aj_at/settings.part" "$aj_at/settings.yaml" && aj_sum_of "$aj_sas" >"$aj_at/sum"
}

aj_sum_of() { # TEXT
  printf '%s' "$1" | sha256sum
}

aj_is_mounted() { # FOLDER
  local aj_place aj_found
  while read -r _ aj_place _; do
    printf -v aj_found %b "$aj_place" # spaces stand there as \040
    [[ $aj_found != "${1%/}" ]] || return 0
  done </proc/self/mounts
  return 1
}

aj_mount_wait() { # KEY
  local aj_account aj_endpoint aj_container aj_folder aj_mode aj_sas_file aj_at
  local aj_until=$((SECONDS + ${AJ_MOUNT_WAIT:-60}))
  aj_of_key "$1"
  until aj_is_mounted "$aj_folder"; do
    [[ ! -e $aj_at/ended ]] || aj_die 118 "storage $1 cannot be mounted at $aj_folder: $(aj_storage_words "$1")"
    ((SECONDS < aj_until)) ||
      aj_die 118 "storage $1 was not mounted at $aj_folder within ${AJ_MOUNT_WAIT:-60} s: $(aj_storage_words "$1")"
    sleep 0.1
  done
  : >"$aj_at/mounted"
}

aj_storage_words() { # KEY: what blobfuse2 said last
  local aj_sas
  aj_sas=$(cat -- "$aj_sas_file" 2>/dev/null)
  cat -- "$aj_own/storage/$1/words" "$aj_own/storage/$1/log" >"$aj_at/words" 2>/dev/null
  aj_last_words "$aj_at/words" "$aj_sas"
}

aj_storage_watch() { # stays, and hands renewed signatures on
  local aj_key aj_mounts aj_account aj_endpoint aj_container aj_folder aj_mode aj_sas_file aj_at aj_sas
  aj_storage_folder
  while sleep "${AJ_STORAGE_LOOK:-60}"; do
    for aj_key in $AJ_STORAGE; do
      aj_of_key "$aj_key"
      aj_sas=$(cat -- "$aj_sas_file" 2>/dev/null)
      [[ -n $aj_sas && $(aj_sum_of "$aj_sas") != "$(cat -- "$aj_at/sum" 2>/dev/null)" ]] || continue
      aj_write_settings "$aj_key" || aj_say "the renewed signature of storage $aj_key could not be handed on"
    done
  done
}

aj_storage_flush() { # unmounts all; false when one of them could not write everything
  local aj_key aj_mounts aj_account aj_endpoint aj_container aj_folder aj_mode aj_sas_file aj_at aj_bad=0
  aj_storage_folder
  [[ -d $aj_mounts ]] || return 0
  for aj_key in $AJ_STORAGE; do
    aj_of_key "$aj_key"
    [[ ! -d $aj_at ]] || aj_unmount "$aj_key" || [[ ! -e $aj_at/mounted ]] || aj_bad=1
  done
  rm -rf "$aj_mounts"
  return "$aj_bad"
}

aj_unmount() { # KEY; false when it did not end well
  local aj_code aj_until=$((SECONDS + ${AJ_FLUSH_WAIT:-900})) aj_next=0
  if ! aj_is_mounted "$aj_folder"; then
    [[ ! -e $aj_at/mounted ]] ||
      aj_say "blobfuse2 of storage $1 ended before the job did: $(aj_storage_words "$1")"
    return 1
  fi
  # What was written is on its way with the last close of each file; what is still in use is asked for again.
  while aj_is_mounted "$aj_folder" && ((SECONDS < aj_until)); do
    if ((SECONDS >= aj_next)); then
      aj_next=$((SECONDS + 2))
      "$(cat -- "$aj_mounts/program")" unmount "$aj_folder" >"$aj_at/unmount" 2>&1 </dev/null && continue
    fi
    sleep 0.1
  done
  while [[ ! -e $aj_at/ended ]] && ((SECONDS < aj_until)); do sleep 0.1; done
  if ! read -r aj_code <"$aj_at/ended" 2>/dev/null; then
    cat -- "$aj_at/unmount" >>"$aj_own/storage/$1/words" 2>/dev/null
    aj_say "storage $1 could not be unmounted: $(aj_storage_words "$1")"
    return 1
  fi
  ((aj_code == 0)) || aj_say "blobfuse2 of storage $1 ended with $aj_code: $(aj_storage_words "$1")"
  return "$((aj_code != 0))"
}

# Blobfuse2 itself

aj_find_blobfuse() { # sets aj_blobfuse
  aj_blobfuse=$(type -P blobfuse2)
  if [[ -z $aj_blobfuse ]] || ! aj_is_new_enough "$aj_blobfuse"; then
    aj_install_blobfuse
    hash -r
    aj_blobfuse=$(type -P blobfuse2)
    if [[ -z $aj_blobfuse ]] || ! aj_is_new_enough "$aj_blobfuse"; then
      aj_die 118 "blobfuse2 could not be installed: $(aj_last_words "$aj_own/install.words")"
    fi
  fi
  printf '%s\n' "$aj_blobfuse" >"$aj_mounts/program"
}

aj_is_new_enough() { # PROGRAM
  local aj_said aj_at aj_have aj_due
  aj_said=$("$1" --version 2>/dev/null </dev/null)
  [[ $aj_said =~ ([0123456789]+)\.([0123456789]+)\.([0123456789]+) ]] || return 1
  aj_have=("${BASH_REMATCH[@]:1}")
  IFS=. read -r -a aj_due <<<"${AJ_BLOBFUSE2_MINIMUM:-0.0.0}"
  for aj_at in 0 1 2; do
    ((aj_have[aj_at] == aj_due[aj_at])) || return "$((aj_have[aj_at] < aj_due[aj_at]))"
  done
}

aj_install_blobfuse() {
  local aj_client='' aj_sum='' aj_url='' aj_package aj_manager
  aj_of_machine "${AJ_BLOBFUSE2-}" || aj_die 118 \
    "the image has no blobfuse2 of version ${AJ_BLOBFUSE2_MINIMUM-} or later, and no package is named by blobfuse2.url"
  aj_find_client
  [[ -n $aj_client ]] || aj_die 117 'blobfuse2 cannot be downloaded: the image has none of curl, wget, python3'
  aj_package=$aj_own/${aj_url##*/}
  aj_fetch "$aj_url" "$aj_package" ||
    aj_die 118 "blobfuse2 could not be downloaded: $(aj_last_words "$aj_own/fetch.words")"
  aj_is_sum "$aj_package" "$aj_sum" || aj_die 116 "blobfuse2 from $aj_url does not have the SHA-256 $aj_sum"
  for aj_manager in apt-get tdnf dnf microdnf yum zypper dpkg rpm ''; do
    [[ -z $aj_manager ]] || type -P "$aj_manager" >/dev/null && break
  done
  case $aj_manager in
    '') aj_die 118 'blobfuse2 cannot be installed: the image has no package manager' ;;
    apt-get) { apt-get update && apt-get install -y --no-install-recommends "$aj_package"; } ;;
    zypper) zypper --non-interactive install --allow-unsigned-rpm "$aj_package" ;;
    dpkg | rpm) "$aj_manager" -i "$aj_package" ;;
    *) "$aj_manager" install -y "$aj_package" ;;
  esac >"$aj_own/install.words" 2>&1 </dev/null
}
