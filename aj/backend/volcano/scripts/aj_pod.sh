#!/usr/bin/env bash
# The first process of a pod: ranks, storage, code, setup, command, in this order, and then an end in good order.
#
# Setup and command run in login shells, each in a process group of its own: signals reach all of it, and none of it
# is left behind. Setup runs once, whatever the number of processes; what it exported is there for all of them.
#
# Reads    AJ_COMMAND, AJ_SETUP: shell lines; AJ_SETUP_TIMEOUT (seconds; none), AJ_TERM_GRACE (seconds, 25: from TERM
#          to KILL), AJ_MASTER_WAIT (seconds, 300), AJ_LAUNCHER (processes: as many as AJ_PROCESSES_PER_NODE), TMPDIR,
#          AJ_STORAGE, and what the other parts read
# Ends     as the command, of several processes as the first that failed; 128 + N when signal N ended it; as the setup
#          when that failed; 110 wrong input, 114 the setup took too long, 119 the last outputs could not be written,
#          and as the other parts
#
# Other parts: aj_storage_mount, which ends with 116, 117 or 118 when it fails; aj_storage_watch, which stays and
# takes up renewed signatures; aj_storage_flush, false when something could not be written.
# shellcheck disable=SC2154,SC2317,SC2329 # other parts set variables too; what a trap calls is not unreachable
set -u +e +x +o posix

aj_pipe='' aj_groups=() aj_ended=() aj_launching='' aj_signals=() aj_watcher=''
aj_left='' aj_runs='' aj_status=0 aj_failed=''
declare -A aj_numbers=([HUP]=1 [INT]=2 [QUIT]=3 [USR1]=10 [USR2]=12 [TERM]=15)

aj_pause() { # SECONDS, without a program where the system allows it
  if [[ -n $aj_pipe ]]; then
    read -r -t "$1" -u "$aj_pipe" _
  else
    sleep "$1"
  fi
}

# Groups: what was started, and everything below it

aj_launch() { # FUNCTION WORDS…, in a group of its own
  aj_launching=1
  set -m
  (
    [[ -z $aj_pipe ]] || exec {aj_pipe}>&-
    aj_pipe=''
    "$@"
  ) </dev/null &
  aj_groups+=($!)
  set +m
  aj_launching=''
  local aj_signal
  [[ -z $aj_left ]] || aj_signals+=(TERM) # it came between two starts
  for aj_signal in ${aj_signals[@]+"${aj_signals[@]}"}; do kill -s "$aj_signal" -- "-$!" 2>/dev/null; done
}

aj_pass() { # SIGNAL, to whom it concerns
  # USR1 and USR2 are words between a platform and a command: no setup would know them.
  [[ $1 != USR? || $aj_runs == 'command' ]] || return 0
  if [[ -z $aj_launching && ${#aj_groups[@]} == 0 ]]; then
    exit $((128 + aj_numbers[$1]))
  fi
  [[ -z $aj_launching ]] || aj_signals+=("$1")
  aj_tell "$1"
  [[ $1 != TERM ]] || aj_left=${aj_left:-$((aj_grace * 10))}
}

aj_tell() { # SIGNAL, to every group
  local aj_group
  for aj_group in ${aj_groups[@]+"${aj_groups[@]}"}; do kill -s "$1" -- "-$aj_group" 2>/dev/null; done
}

aj_follow() { # [SECONDS]: wait until the first process of every group has ended; false at the limit
  local aj_until='' aj_looks=0
  [[ -z ${1-} ]] || aj_until=$((SECONDS + $1))
  aj_status=0 aj_failed='' aj_ended=() aj_signals=()
  while ! aj_all_ended; do
    if [[ -z $aj_left ]] && ((aj_looks++ < 10)); then
      aj_pause 0.02 # for what is over in a moment
      continue
    fi
    aj_pause 0.1
    if [[ -n $aj_left ]]; then
      ((aj_left-- > 0)) || aj_tell KILL
    elif [[ -n $aj_until ]] && ((SECONDS >= aj_until)); then
      return 1
    fi
  done
}

aj_all_ended() { # takes note of what has ended; the first failure ends the others
  local aj_at aj_group aj_code aj_all=0
  for aj_at in ${aj_groups[@]+"${!aj_groups[@]}"}; do
    [[ -z ${aj_ended[aj_at]-} ]] || continue
    aj_group=${aj_groups[aj_at]}
    # Not by `wait` alone: a signal that comes just before it would be noticed only when all is over.
    if kill -0 "$aj_group" 2>/dev/null; then
      aj_all=1
      continue
    fi
    { wait "$aj_group"; } 2>/dev/null
    aj_code=$?
    aj_ended[aj_at]=1
    ((aj_code)) || continue
    [[ -n $aj_failed ]] || aj_status=$aj_code
    [[ -n $aj_failed$aj_left ]] || ((${#aj_groups[@]} == 1)) || aj_end_others "$aj_at" "$aj_code"
    aj_failed=1
  done
  return "$aj_all"
}

aj_end_others() { # INDEX CODE
  aj_say "process $1 of this node ended with status $2: the others are asked to end"
  aj_tell TERM
  aj_left=$((aj_grace * 10))
}

aj_lives() { # does anything of any group run
  local aj_file aj_stat aj_known=" ${aj_groups[*]-} "
  # Something may be there that has ended: whoever should take note of that does not always do so.
  for aj_file in /proc/[0123456789]*/stat; do
    aj_stat=''
    { read -r -d '' aj_stat <"$aj_file"; } 2>/dev/null
    # shellcheck disable=SC2086 # fields are what is wanted; the name of a program before them may hold anything
    set -- ${aj_stat##*) }
    [[ $# -lt 3 || $aj_known != *" $3 "* || $1 == [ZX] ]] || return 0
  done
  return 1
}

aj_end() { # ask what is left to end, and make it when the time is over
  local aj_tenths=${aj_left:-20} # 2 seconds for what nobody has asked to end before
  aj_lives || return 0
  # Once is enough for a command, which may be saving its work. The shell of a setup has traps, and may lose a signal
  # between the start of a program and its first moment.
  [[ -n $aj_left && $aj_runs == 'command' ]] || aj_tell TERM
  while ((aj_tenths-- > 0)) && aj_lives; do aj_pause 0.1; done
  aj_tell KILL
  aj_tenths=20
  while ((aj_tenths-- > 0)) && aj_lives; do aj_pause 0.1; done
}

aj_phase() { # FUNCTION WORDS…: a step that ends the pod when it fails, and that a signal can end
  aj_launch "$@"
  aj_follow
  ((aj_status == 0)) || exit "$aj_status"
  [[ -z $aj_left ]] || exit 143 # asked to end, it ended well
  aj_groups=()
}

# Shells: the image's profile, and then the text

aj_begin() { # FOLDER: the first words of every shell; what the image had on PATH stays there
  local aj_entry aj_missing='' aj_pair IFS=:
  set -f
  for aj_entry in ${AJ_IMAGE_PATH-}; do
    [[ :$PATH: == *":$aj_entry:"* ]] || aj_missing+=$aj_entry:
  done
  set +f
  PATH=$aj_missing$PATH
  if [[ -e $1/changes ]]; then
    while IFS= read -r -d '' aj_pair; do
      if [[ $aj_pair == *=* ]]; then
        # shellcheck disable=SC2163 # it holds a name and a value
        export "$aj_pair"
      else
        unset -v "$aj_pair"
      fi
    done <"$1/changes"
  fi
  unset -v AJ_IMAGE_PATH
  unset -f aj_begin
}

aj_run_shell() { # NAME WORDS TEXT: the words stand before the text, in its first line, so that lines count as written
  export AJ_IMAGE_PATH=$PATH
  export -f aj_begin
  exec "$BASH" -l -c "$(printf 'aj_begin %q; %s set -e; %s' "$aj_own" "$2" "$3")" "$1"
}

aj_run_setup() {
  local aj_watch
  printf -v aj_watch 'aj_told=%q; ' "$aj_own"
  # shellcheck disable=SC2016 # it is the setup's shell that reads this
  {
    aj_watch+='aj_hand_over() { local aj_name IFS=$'\''\n'\''; '
    aj_watch+='if (($1)); then printf %s "${aj_line-}" >"$aj_told/line"; else for aj_name in $(compgen -e); do '
    aj_watch+='printf "%s=%s\0" "$aj_name" "${!aj_name-}"; done >"$aj_told/all"; fi; }; '
    aj_watch+='trap '\''aj_line=$LINENO'\'' ERR; trap '\''aj_hand_over $?'\'' EXIT;'
  }
  aj_run_shell aj-setup "$aj_watch" "$AJ_SETUP"
}

aj_run_command() { # LOCAL_RANK, or nothing when there is one process
  if [[ -n ${1-} ]]; then
    export LOCAL_RANK=$1 RANK=$((aj_first + $1))
  fi
  aj_run_shell aj-command '' "$AJ_COMMAND"
}

# Setup

aj_setup() {
  [[ -n ${AJ_SETUP-} ]] || return 0
  local aj_name aj_line=''
  declare -A aj_before=()
  for aj_name in $(compgen -e); do aj_before[$aj_name]=${!aj_name}; done
  aj_runs=setup
  aj_launch aj_run_setup
  if ! aj_follow "${AJ_SETUP_TIMEOUT-}"; then
    aj_end
    aj_die 114 "the setup took longer than $AJ_SETUP_TIMEOUT s"
  fi
  ((aj_status)) || [[ -z $aj_left ]] || aj_status=143 # asked to end, it ended well
  if ((aj_status)); then
    { read -r aj_line <"$aj_own/line"; } 2>/dev/null
    aj_die "$aj_status" "the setup ended with status $aj_status${aj_line:+ at its line $aj_line}"
  fi
  aj_kept=("${aj_groups[@]}") aj_groups=() # what it left running runs on, beside the command
  aj_find_changes
}

aj_find_changes() { # what the setup exported, changed or took away, for every process of the node
  local aj_pair aj_name
  declare -A aj_after=()
  if [[ ! -e $aj_own/all ]]; then
    aj_say 'the setup has a trap on EXIT of its own, or became another program: what it exported is not handed on'
    return
  fi
  while IFS= read -r -d '' aj_pair; do
    aj_name=${aj_pair%%=*}
    aj_after[$aj_name]=1
    [[ -n ${aj_before[$aj_name]+there} && ${aj_before[$aj_name]} == "${aj_pair#*=}" ]] && continue
    aj_is_each_ones_own "$aj_name" || printf '%s\0' "$aj_pair"
  done <"$aj_own/all" >"$aj_own/changes"
  for aj_name in "${!aj_before[@]}"; do
    [[ -n ${aj_after[$aj_name]-} ]] || aj_is_each_ones_own "$aj_name" || printf '%s\0' "$aj_name"
  done >>"$aj_own/changes"
  rm -f "$aj_own/all"
}

aj_is_each_ones_own() { # NAME
  case $1 in
    RANK | WORLD_SIZE | LOCAL_RANK | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | MASTER_ADDR | MASTER_PORT) ;;
    OMPI_* | PMI_* | PMIX_* | VC_* | VK_* | AJ_* | aj_* | BASH_FUNC_*) ;;
    PWD | OLDPWD | SHLVL | _ | SHELLOPTS | BASHOPTS | BASH_VERSINFO | UID | EUID | PPID) ;;
    *) return 1 ;;
  esac
}

# The command

aj_wait_for_master() {
  local aj_until aj_limit=${AJ_MASTER_WAIT:-300}
  [[ -n ${MASTER_ADDR-} ]] || return 0
  aj_until=$((SECONDS + aj_limit))
  until aj_resolves "$MASTER_ADDR"; do
    if ((SECONDS >= aj_until)); then
      aj_say "the name $MASTER_ADDR did not resolve within $aj_limit s: the command starts all the same"
      return 0
    fi
    aj_pause 1
  done
}

aj_resolves() { # NAME; true as well where no program can tell
  if type -P getent >/dev/null; then
    getent hosts "$1" >/dev/null 2>&1
  elif type -P python3 >/dev/null; then
    python3 -c 'import socket, sys; socket.getaddrinfo(sys.argv[1], None)' "$1" >/dev/null 2>&1
  elif type -P nslookup >/dev/null; then
    nslookup "$1" >/dev/null 2>&1
  fi
}

aj_command() {
  local aj_at
  aj_runs='command'
  if [[ ${AJ_LAUNCHER-} == processes ]]; then
    for ((aj_at = 0; aj_at < aj_processes; aj_at++)); do aj_launch aj_run_command "$aj_at"; done
  else
    aj_launch aj_run_command
  fi
  aj_follow
}

# The whole

aj_leave() {
  aj_status=$?
  trap '' HUP INT QUIT USR1 USR2 TERM
  aj_groups=(${aj_kept[@]+"${aj_kept[@]}"} ${aj_groups[@]+"${aj_groups[@]}"})
  aj_end
  [[ -z $aj_watcher ]] || kill -KILL "$aj_watcher" 2>/dev/null
  if [[ -n $aj_mounted ]] && ! (aj_storage_flush); then
    aj_say 'the last outputs could not be written to the storage'
    ((aj_status)) || aj_status=119
  fi
  [[ -z $aj_own ]] || rm -rf "$aj_own"
  exit "$aj_status"
}

aj_check_input() {
  [[ -n ${AJ_COMMAND-} ]] || aj_die 110 'AJ_COMMAND is not set'
  aj_whole AJ_TERM_GRACE "${AJ_TERM_GRACE:-25}"
  aj_grace=$aj_number
  [[ -z ${AJ_SETUP_TIMEOUT-} ]] || aj_whole AJ_SETUP_TIMEOUT "$AJ_SETUP_TIMEOUT"
  [[ -z ${AJ_MASTER_WAIT-} ]] || aj_whole AJ_MASTER_WAIT "$AJ_MASTER_WAIT"
}

aj_make_own() { # a folder that nobody else can enter
  aj_own=${TMPDIR:-/tmp}/aj-${AJ_ID-}-$$-$RANDOM$RANDOM
  mkdir -m 700 "$aj_own" 2>/dev/null && return
  local aj_tried=$aj_own
  aj_own=''
  aj_die 110 "the private folder $aj_tried cannot be made"
}

aj_own='' aj_mounted='' aj_kept=() aj_grace=0
trap aj_leave EXIT
for aj_signal in HUP INT QUIT USR1 USR2 TERM; do
  # shellcheck disable=SC2064 # the name of the signal is meant
  trap "aj_pass $aj_signal" "$aj_signal"
done
aj_check_input
aj_find_ranks
aj_make_own
{ exec {aj_pipe}<> <(:); } 2>/dev/null || aj_pipe=''
if [[ -n ${AJ_STORAGE-} ]]; then
  aj_mounted=1
  aj_phase aj_storage_mount
  aj_storage_watch &
  aj_watcher=$!
fi
! aj_has_code || aj_phase aj_get_code
aj_enter_code
aj_setup
((aj_nodes < 2)) || aj_phase aj_wait_for_master
aj_command
exit "$aj_status"
