#!/usr/bin/env bash
# The code of a pod: copied from the shared volume, or fetched from blob storage, checked, and unpacked here.
#
# Reads    AJ_CODE_FROM (a file on the volume), or what aj_blob.sh reads; AJ_CODE_ARCHIVE_SHA256, AJ_WORKDIR; AJ_SSH
#          (1: the archive brings files for ssh)
# Ends     111 another archive than was expected, 112 it cannot be read or unpacked, and as aj_blob.sh
#
# What lies on the shared volume is never run: others may write there.
# shellcheck disable=SC2154 # the first part to run sets what all of them use

aj_has_code() {
  [[ -n ${AJ_CODE_FROM-}${AJ_CODE_URL_FILE-}${AJ_CODE_URL-} ]]
}

aj_get_code() {
  local aj_archive=$AJ_WORKDIR/.aj-code.tar.gz aj_tool
  for aj_tool in tar gzip sha256sum; do
    type -P "$aj_tool" >/dev/null || aj_die 112 "the code cannot be unpacked: the image has no $aj_tool"
  done
  [[ ${AJ_CODE_ARCHIVE_SHA256-} =~ ^[0123456789abcdef]{64}$ ]] || aj_die 110 'AJ_CODE_ARCHIVE_SHA256 is not a SHA-256'
  mkdir -p "$AJ_WORKDIR" || aj_die 112 "the work directory $AJ_WORKDIR cannot be made"
  if [[ -n ${AJ_CODE_FROM-} ]]; then
    cp -- "$AJ_CODE_FROM" "$aj_archive" || aj_die 112 "the code $AJ_CODE_FROM cannot be copied to $AJ_WORKDIR"
  else
    aj_blob_download "$aj_archive"
  fi
  aj_check_code "$aj_archive"
  LC_ALL=C tar -x -z -o -f "$aj_archive" -C "$AJ_WORKDIR" || aj_die 112 "the code cannot be unpacked in $AJ_WORKDIR"
  rm -f "$aj_archive"
  aj_take_ssh
}

aj_check_code() { # FILE
  local aj_found
  aj_found=$(sha256sum <"$1") || aj_die 112 'the code cannot be read'
  aj_found=${aj_found%% *}
  [[ $aj_found == "$AJ_CODE_ARCHIVE_SHA256" ]] && return
  rm -f "$1"
  aj_die 111 "the code has SHA-256 $aj_found where $AJ_CODE_ARCHIVE_SHA256 was expected"
}

aj_take_ssh() { # files for ssh out of the tree, where nobody else can read them
  [[ ${AJ_SSH-} == 1 && -d $AJ_WORKDIR/.ssh ]] || return 0
  mv "$AJ_WORKDIR/.ssh" "$aj_own/ssh" || aj_die 112 "$aj_own/ssh cannot be made"
  chmod 700 "$aj_own/ssh" || aj_die 112 "$aj_own/ssh cannot be closed to others"
}

aj_use_ssh() { # FOLDER
  local aj_command aj_file
  printf -v aj_command 'ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile=%q' "$1/known_hosts"
  [[ ! -f $1/config ]] || printf -v aj_command '%s -F %q' "$aj_command" "$1/config"
  for aj_file in "$1"/*; do
    case ${aj_file##*/} in
      config | known_hosts | *.pub | '*') ;;
      *) printf -v aj_command '%s -i %q' "$aj_command" "$aj_file" ;;
    esac
  done
  export GIT_SSH_COMMAND=$aj_command
}

aj_enter_code() { # into the code, or where the image starts
  if aj_has_code; then
    cd "$AJ_WORKDIR" || aj_die 112 "the work directory $AJ_WORKDIR cannot be entered"
    [[ ! -d $aj_own/ssh || -n ${GIT_SSH_COMMAND-} ]] || aj_use_ssh "$aj_own/ssh"
  fi
  AJ_WORKDIR=$PWD
  export AJ_WORKDIR
}
