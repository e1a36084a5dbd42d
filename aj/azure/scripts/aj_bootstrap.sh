#!/usr/bin/env bash
# Unpacks the code of a job, once on each node, and becomes the runner inside it.
#
#     bash aj_bootstrap.sh ARCHIVE
#
# Every process of a job runs this at the same time. One of them unpacks, the others wait for it; when it dies,
# one of the others goes on in its place, and when it fails, all of them end with its code and its words.
#
# Reads    AJ_ID, AJ_CODE_ARCHIVE_SHA256; TMPDIR, AJ_BOOTSTRAP_TIMEOUT (seconds, 1800), AJ_ATTEMPT, and AJ_SSH
#          (1: the archive brings files for ssh)
# Gives    AJ_NODE_DIR, AJ_ATTEMPT_TOKEN, AJ_RANK_DIR, and GIT_SSH_COMMAND with AJ_SSH
# Ends     110 wrong input or no private folder, 111 another archive than was expected, 112 it cannot be unpacked,
#          114 it took too long
#
# Below ${TMPDIR:-/tmp}/aj-UID, which nobody else can enter:
#
#     ID-HASH/              one job's code: code/, ssh/, and .aj-ready with the whole hash, there from the first
#                           moment on, because all of it appears by one rename
#     .ID-HASH.NONCE/       the same, being unpacked by a process
#     ID.lock/1, 2, …       whose turn it was: the highest number has the turn. Each is a whole file from its first
#                           moment, naming its process; empty once it was given back. None is ever removed or
#                           reused, so the next number can be made by one process only.
#     ID/                   what the processes of the job on this node tell each other
set -u +e +x +o posix
aj_umask=$(umask)
umask 077

aj_child='' aj_held='' aj_mine='' aj_staging='' aj_pipe='' aj_said='' aj_status=0 aj_cut=0

aj_say() {
  printf 'aj: %s\n' "$*" >&2
}

aj_die() { # CODE WORDS
  aj_say "$2"
  exit "$1"
}

# What is known of a process: its start time tells it from a later one with the same number.
aj_start_of() { # PID, sets aj_start; false when it is gone
  local aj_stat=''
  aj_start=''
  { read -r -d '' aj_stat <"/proc/$1/stat"; } 2>/dev/null
  # shellcheck disable=SC2086 # fields are what is wanted; the name of a program before them may hold anything
  set -- ${aj_stat##*) }
  [[ $# -ge 20 && $1 != [ZX] ]] || return 1
  aj_start=${20}
}

aj_pause() { # SECONDS, without a program where the system allows it
  if [[ -n $aj_pipe ]]; then
    read -r -t "$1" -u "$aj_pipe" _
  else
    sleep "$1"
  fi
}

aj_leave() {
  [[ -z $aj_child ]] || { kill -KILL "$aj_child" && wait "$aj_child"; } 2>/dev/null
  aj_child=''
  [[ -z $aj_staging$aj_mine ]] || rm -rf ${aj_staging:+"$aj_staging"} ${aj_mine:+"$aj_mine"}
  aj_staging='' aj_mine=''
  [[ -z $aj_held ]] || : >"$aj_held"
  aj_held=''
}

# Input and the private folder

aj_check_input() { # ARCHIVE
  [[ -n ${1-} ]] || aj_die 110 'no archive was named'
  [[ -n ${AJ_ID-} ]] || aj_die 110 'AJ_ID is not set'
  [[ -n ${AJ_CODE_ARCHIVE_SHA256-} ]] || aj_die 110 'AJ_CODE_ARCHIVE_SHA256 is not set'
  local aj_hex='[0123456789abcdef]'
  [[ $AJ_ID =~ ^$aj_hex{8}$ ]] || aj_die 110 'AJ_ID is not an id of eight hex characters'
  [[ $AJ_CODE_ARCHIVE_SHA256 =~ ^$aj_hex{64}$ ]] || aj_die 110 'AJ_CODE_ARCHIVE_SHA256 is not a SHA-256'
  aj_limit=${AJ_BOOTSTRAP_TIMEOUT:-1800}
  [[ $aj_limit =~ ^[0123456789]{1,9}$ ]] || aj_die 110 'AJ_BOOTSTRAP_TIMEOUT is not a number of seconds'
  aj_archive=$1
  [[ $aj_archive == /* ]] || aj_archive=$PWD/$aj_archive
  [[ -f $aj_archive && -r $aj_archive ]] || aj_die 110 "the archive $aj_archive cannot be read"
}

aj_make_root() { # FOLDER
  local aj_listed
  [[ -e $1 || -L $1 ]] || mkdir "$1" 2>/dev/null
  [[ -d $1 && ! -L $1 ]] || aj_die 110 "$1 is not a folder, or cannot be made"
  [[ -O $1 ]] || aj_die 110 "$1 belongs to another user"
  aj_listed=$(LC_ALL=C ls -ld "$1") || aj_die 110 "$1 cannot be looked at"
  [[ $aj_listed == d???--[-S]--[-T]* ]] || aj_die 110 "$1 is open to others: ${aj_listed%% *}"
}

# This attempt of the job, told from an earlier one on the same node. A sum of FNV-1a: there is nobody to fool.
aj_make_token() { # WORDS
  local aj_at aj_code aj_sum=-3750763034362895579
  for ((aj_at = 0; aj_at < ${#1}; aj_at++)); do
    printf -v aj_code %d "'${1:aj_at:1}"
    aj_sum=$(((aj_sum ^ aj_code) * 1099511628211))
  done
  printf -v AJ_ATTEMPT_TOKEN %016x "$aj_sum"
}

aj_look_around() {
  aj_boot=unknown
  { read -r aj_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
  local aj_first=unknown
  aj_start_of 1 && aj_first=$aj_start
  aj_make_token "$AJ_ID|${AZUREML_RUN_ID-}|${TORCHELASTIC_RESTART_COUNT-}|${AJ_ATTEMPT-}|$aj_boot|$aj_first"
  aj_start_of $$ || aj_die 110 '/proc does not tell about processes'
  aj_own=$aj_start
  aj_nonce=$$-$aj_own-$RANDOM$RANDOM
  local aj_top=${TMPDIR:-/tmp}
  [[ $aj_top == /* ]] || aj_top=$PWD/$aj_top
  aj_root=${aj_top%/}/aj-$EUID
  aj_make_root "$aj_root"
  aj_name=$AJ_ID-${AJ_CODE_ARCHIVE_SHA256:0:16}
  aj_tree=$aj_root/$aj_name
  aj_lock=$aj_root/$AJ_ID.lock
  AJ_NODE_DIR=$aj_root/$AJ_ID
  aj_failed=$AJ_NODE_DIR/failed-$aj_name-$AJ_ATTEMPT_TOKEN
  local aj_folder
  for aj_folder in "$aj_lock" "$AJ_NODE_DIR"; do
    [[ -d $aj_folder ]] || mkdir -p "$aj_folder" || aj_die 110 "$aj_folder cannot be made"
  done
  { exec {aj_pipe}<> <(:); } 2>/dev/null || aj_pipe=''
}

# Whose turn it is

aj_is_taken() { # sets aj_turn, and of its process aj_pid; false when nobody has the turn
  local aj_file aj_began aj_booted
  aj_turn=0 aj_pid=''
  for aj_file in "$aj_lock"/[0123456789]*; do
    aj_file=${aj_file##*/}
    [[ $aj_file == *[!0123456789]* ]] || ((aj_file <= aj_turn)) || aj_turn=$aj_file
  done
  ((aj_turn)) || return 1
  { read -r aj_pid aj_began aj_booted _ <"$aj_lock/$aj_turn"; } 2>/dev/null || return 1
  [[ $aj_booted == "$aj_boot" && $aj_pid =~ ^[0123456789]+$ ]] || return 1
  # No signal is sent to find out, so it does not matter whose process it is.
  aj_start_of "$aj_pid" && [[ $aj_start == "$aj_began" ]]
}

aj_take_turn() { # false when somebody else has it, or was faster
  aj_is_taken && return 1
  local aj_next=$((aj_turn + 1))
  if [[ -z $aj_mine ]]; then
    aj_mine=$aj_lock/.$aj_nonce
    printf '%s %s %s %s\n' $$ "$aj_own" "$aj_boot" "$aj_nonce" >"$aj_mine" ||
      aj_die 112 "nothing can be written in $aj_root"
  fi
  if ! ln "$aj_mine" "$aj_lock/$aj_next" 2>/dev/null; then
    [[ -e $aj_lock/$aj_next ]] || aj_die 110 "no link can be made in $aj_lock"
    return 1
  fi
  aj_held=$aj_lock/$aj_next
}

aj_is_ready() {
  local aj_hash=''
  [[ -d $aj_tree && ! -L $aj_tree ]] || return 1
  { read -r aj_hash <"$aj_tree/.aj-ready"; } 2>/dev/null
  [[ $aj_hash == "$AJ_CODE_ARCHIVE_SHA256" ]]
}

aj_hear_failure() {
  local aj_code='' aj_words=''
  { read -r aj_code && IFS= read -r aj_words; } 2>/dev/null <"$aj_failed" || return 0
  aj_die "$aj_code" "$aj_words"
}

aj_fail() { # CODE WORDS, for every process of this attempt on this node
  [[ -z $aj_staging ]] || rm -rf "$aj_staging" # first: it may be what fills the disk
  { printf '%s\n%s\n' "$1" "$2" >"$aj_failed.$aj_nonce" && mv -f "$aj_failed.$aj_nonce" "$aj_failed"; } 2>/dev/null
  aj_die "$1" "$2"
}

# Unpacking

aj_step() { # PROGRAM …, sets aj_said, aj_status and aj_cut; ends at once on a signal, and at the limit
  aj_said='' aj_cut=0
  if [[ -z $aj_pipe ]]; then
    aj_said=$(aj_become "$@" 2>&1)
    aj_status=$?
    [[ $aj_said != *emoving\ leading* ]] || aj_cut=1
    return
  fi
  aj_become "$@" >&"$aj_pipe" 2>&1 &
  aj_child=$!
  # Its words come through a pipe: a file would be cut short by the very disk that is full.
  while aj_listen || kill -0 "$aj_child" 2>/dev/null; do
    ((SECONDS < aj_until)) || aj_fail 114 "the code could not be unpacked within $aj_limit s: $1 still ran"
  done
  while aj_listen; do :; done
  wait "$aj_child"
  aj_status=$?
  aj_child=''
}

aj_become() { # PROGRAM …
  unset TAR_OPTIONS GZIP
  export LC_ALL=C
  exec "$@" </dev/null
}

aj_listen() { # false when nothing was said for a moment
  local aj_line='' aj_code
  IFS= read -r -t 0.05 -u "$aj_pipe" aj_line
  aj_code=$?
  [[ $aj_line != *emoving\ leading* ]] || aj_cut=1
  ((aj_code)) || aj_line+=$'\n'
  ((${#aj_said} > 4000)) || aj_said+=$aj_line
  [[ -n $aj_line ]]
}

aj_words() { # what was said, in one line
  local aj_line=${aj_said%%$'\n'}
  aj_line=${aj_line//$'\n'/; }
  printf '%s' "${aj_line:0:400}"
}

aj_room() { # what is left of the disk: tar does not always say that it is full
  local aj_rows
  aj_rows=$(df -Pk "$aj_root" 2>/dev/null) || return 0
  # shellcheck disable=SC2086 # as above
  set -- ${aj_rows##*$'\n'}
  [[ -z ${4-} ]] || printf ' (%s KiB are free)' "$4"
}

aj_need_tools() {
  aj_missing=()
  local aj_tool
  for aj_tool in tar gzip sha256sum; do
    type -P "$aj_tool" >/dev/null || aj_missing+=("$aj_tool")
  done
  ((${#aj_missing[@]} == 0))
}

aj_install_tools() {
  local aj_log=$AJ_NODE_DIR/tools.log aj_sudo=() aj_manager aj_before=$aj_until
  ((EUID == 0)) || aj_sudo=(sudo -n)
  for aj_manager in apt-get tdnf dnf microdnf yum apk zypper ''; do
    [[ -z $aj_manager ]] || type -P "$aj_manager" >/dev/null && break
  done
  [[ -n $aj_manager ]] || aj_fail 112 "the code cannot be unpacked: no ${aj_missing[*]} here, and no way to get it"
  aj_say "installing ${aj_missing[*]} by $aj_manager"
  ((aj_until < SECONDS + 300)) || aj_until=$((SECONDS + 300))
  : >"$aj_log"
  case $aj_manager in
    apt-get)
      aj_step ${aj_sudo[@]+"${aj_sudo[@]}"} apt-get update
      printf '%s' "$aj_said" >>"$aj_log"
      aj_step ${aj_sudo[@]+"${aj_sudo[@]}"} apt-get install -y --no-install-recommends tar gzip coreutils
      ;;
    apk) aj_step ${aj_sudo[@]+"${aj_sudo[@]}"} apk add --no-cache tar gzip coreutils ;;
    zypper) aj_step ${aj_sudo[@]+"${aj_sudo[@]}"} zypper --non-interactive install tar gzip coreutils ;;
    *) aj_step ${aj_sudo[@]+"${aj_sudo[@]}"} "$aj_manager" install -y tar gzip coreutils ;;
  esac
  printf '%s' "$aj_said" >>"$aj_log"
  aj_until=$aj_before
  hash -r
  aj_need_tools || aj_fail 112 "the code cannot be unpacked: $aj_manager did not bring ${aj_missing[*]} (see $aj_log)"
}

aj_check_hash() {
  aj_step sha256sum "$aj_archive"
  local aj_found=${aj_said%% *}
  aj_found=${aj_found#\\} # so it marks a name with odd characters
  ((aj_status == 0)) || aj_fail 112 "the archive cannot be read: $(aj_words)"
  [[ $aj_found == "$AJ_CODE_ARCHIVE_SHA256" ]] ||
    aj_fail 111 "the archive has SHA-256 $aj_found where $AJ_CODE_ARCHIVE_SHA256 was expected"
}

aj_extract() { # FOLDER
  umask "$aj_umask"
  aj_step tar -x -z -o -f "$aj_archive" -C "$1"
  umask 077
  # A name that leads elsewhere was left out by tar, or cut short, and either way it said so.
  ((aj_status == 0 && !aj_cut)) || aj_fail 112 "the archive cannot be unpacked$(aj_room): $(aj_words)"
  [[ -f $1/aj_runner.sh && ! -L $1/aj_runner.sh ]] || aj_fail 112 'the archive holds no aj_runner.sh'
}

aj_publish() { # FOLDER
  mv -f "$1" "$aj_root/" 2>/dev/null && return
  aj_is_ready && return # by somebody else
  # What is there is no whole tree of this code: left by something that went wrong.
  mv -f "$aj_tree" "$aj_staging/old" 2>/dev/null
  mv -f "$1" "$aj_root/" 2>/dev/null || aj_is_ready || aj_fail 112 "$aj_tree cannot be made"
}

aj_sweep() { # with the turn: what the dead left behind, who had it before
  local aj_file aj_dead
  for aj_file in "$aj_lock"/[0123456789]*; do
    [[ $aj_file != "$aj_held" ]] || continue
    aj_dead=''
    { read -r _ _ _ aj_dead <"$aj_file"; } 2>/dev/null
    [[ ! $aj_dead =~ ^[0123456789-]+$ ]] || rm -rf "$aj_root/.$aj_name.$aj_dead" "$aj_lock/.$aj_dead"
  done
}

aj_unpack() { # with the turn
  aj_hear_failure
  aj_sweep
  aj_need_tools || aj_install_tools
  aj_check_hash
  aj_staging=$aj_root/.$aj_name.$aj_nonce
  local aj_new=$aj_staging/$aj_name
  mkdir -p "$aj_new/code" || aj_fail 112 "$aj_new cannot be made"
  aj_extract "$aj_new/code"
  if [[ ${AJ_SSH-} == 1 && -d $aj_new/code/.ssh ]]; then
    mv "$aj_new/code/.ssh" "$aj_new/ssh" || aj_fail 112 "$aj_new/ssh cannot be made"
    chmod 700 "$aj_new/ssh" || aj_fail 112 "$aj_new/ssh cannot be closed to others"
  fi
  printf '%s\n' "$AJ_CODE_ARCHIVE_SHA256" >"$aj_new/.aj-ready" || aj_fail 112 "$aj_new cannot be written"
  aj_publish "$aj_new"
}

aj_wait_for_code() {
  local aj_next=0.02 aj_told=$((SECONDS + 30))
  aj_until=$((SECONDS + aj_limit))
  until aj_is_ready; do
    aj_hear_failure
    if aj_take_turn; then
      aj_is_ready || aj_unpack
      break
    fi
    ((SECONDS < aj_until)) ||
      aj_die 114 "the code was not unpacked within $aj_limit s: process ${aj_pid:-?} of this node was at it"
    if ((SECONDS >= aj_told)); then
      aj_say "waiting for process ${aj_pid:-?} of this node to unpack the code"
      aj_told=$((SECONDS + 300))
    fi
    aj_pause "$aj_next"
    [[ $aj_next != 0.02 ]] || aj_next=0.1
  done
}

# Into the code

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

aj_enter() {
  cd "$aj_tree/code" || aj_die 112 "$aj_tree/code cannot be entered"
  AJ_RANK_DIR=$AJ_NODE_DIR/rank-$$-$aj_own
  mkdir -p "$AJ_RANK_DIR" || aj_die 110 "$AJ_RANK_DIR cannot be made"
  export AJ_NODE_DIR AJ_ATTEMPT_TOKEN AJ_RANK_DIR
  [[ ${AJ_SSH-} != 1 || ! -d $aj_tree/ssh || -n ${GIT_SSH_COMMAND-} ]] || aj_use_ssh "$aj_tree/ssh"
  aj_leave
  [[ -z $aj_pipe ]] || exec {aj_pipe}>&-
  umask "$aj_umask"
  exec "$BASH" aj_runner.sh
}

trap aj_leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
aj_check_input "$@"
aj_look_around
aj_wait_for_code
aj_enter
