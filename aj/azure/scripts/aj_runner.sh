#!/usr/bin/env bash
# Runs one process of a job: rank variables first, then the setup of the node, then the command.
#
#     bash aj_runner.sh            in the folder of the code
#
# The setup runs once on each node and attempt, by the process with LOCAL_RANK 0; the others wait for its end, and
# get what it exported. The command runs in a process group of its own: signals reach all of it, and none of it is
# left behind.
#
# Reads    AJ_COMMAND, AJ_SETUP: shell lines; AJ_NODE_DIR, AJ_ATTEMPT_TOKEN: a private folder of the node, and a word
#          that names this attempt; AJ_RANK_DIR; AJ_SETUP_TIMEOUT (seconds; none), AJ_TERM_GRACE (seconds, 25),
#          AJ_BOOTSTRAP_TIMEOUT (seconds, 1800: how long LOCAL_RANK 0 may take to appear)
# Gives    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, NCCL_SOCKET_IFNAME,
#          AJ_NODE_RANK, AJ_WORKDIR
# Ends     as the command; 128 + N when signal N ended it; as the setup when that failed; 110 wrong input,
#          113 whoever ran the setup died, 114 the setup took too long
# shellcheck disable=SC2317 # what a trap calls is not unreachable
set -u +e +x +o posix

aj_pipe='' aj_group='' aj_setup_group='' aj_launching='' aj_signal=''
aj_left='' aj_rest='' aj_runs='' aj_status=0 aj_changes=''
declare -A aj_numbers=([HUP]=1 [INT]=2 [QUIT]=3 [USR1]=10 [USR2]=12 [TERM]=15)

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

# Rank variables: as the platform set them, else as MPI did, else of a job of one process

aj_whole() { # NAME VALUE: never used in arithmetic before it was looked at
  [[ $2 =~ ^[0123456789]{1,9}$ ]] || aj_die 110 "$1 is not a whole number: $2"
}

aj_find_ranks() {
  local aj_size=${LOCAL_WORLD_SIZE:-${OMPI_COMM_WORLD_LOCAL_SIZE:-${AJ_PROCESSES_PER_NODE:-1}}}
  aj_whole 'the number of processes on a node' "$aj_size"
  ((10#$aj_size)) || aj_size=1
  RANK=${RANK:-${OMPI_COMM_WORLD_RANK:-0}}
  WORLD_SIZE=${WORLD_SIZE:-${OMPI_COMM_WORLD_SIZE:-1}}
  aj_whole RANK "$RANK"
  aj_whole WORLD_SIZE "$WORLD_SIZE"
  ((10#$RANK < 10#$WORLD_SIZE)) || aj_die 110 "RANK is $RANK, which is not below WORLD_SIZE, $WORLD_SIZE"
  LOCAL_RANK=${LOCAL_RANK:-${OMPI_COMM_WORLD_LOCAL_RANK:-$((10#$RANK % 10#$aj_size))}}
  NODE_RANK=${NODE_RANK:-$((10#$RANK / 10#$aj_size))}
  aj_whole LOCAL_RANK "$LOCAL_RANK"
  aj_whole NODE_RANK "$NODE_RANK"
  LOCAL_WORLD_SIZE=$aj_size AJ_NODE_RANK=$NODE_RANK AJ_WORKDIR=$PWD
  export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK AJ_NODE_RANK AJ_WORKDIR
}

aj_find_master() {
  local aj_master=${AZ_BATCH_MASTER_NODE:-${AZ_BATCHAI_MPI_MASTER_NODE:-}}
  [[ -n ${MASTER_ADDR:-}$aj_master ]] || ((10#$NODE_RANK == 0 && 10#$WORLD_SIZE <= 10#$LOCAL_WORLD_SIZE)) ||
    aj_say 'the platform named no master for several nodes: MASTER_ADDR is 127.0.0.1'
  export MASTER_ADDR=${MASTER_ADDR:-${aj_master%%:*}}
  MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}
  export MASTER_PORT=${MASTER_PORT:-6105}
  export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME-^docker0,lo}
}

# Groups: what was started, and everything below it

aj_launch() { # NAME TEXT [CHANGES]: shell text in a group of its own, its environment changed as a file says
  aj_launching=1
  set -m
  (
    [[ -z $aj_pipe ]] || exec {aj_pipe}>&-
    [[ -z ${3-} ]] || aj_apply "$3"
    exec "$BASH" -e -c "$2" "$1"
  ) </dev/null &
  aj_group=$!
  set +m
  aj_launching=''
  [[ -z $aj_signal ]] || kill -s "$aj_signal" -- "-$aj_group" 2>/dev/null
}

aj_pass() { # SIGNAL, to whom it concerns
  # USR1 and USR2 are words between a platform and a command: no setup would know them.
  [[ $1 != USR? || $aj_runs == command ]] || return 0
  if [[ -n $aj_launching ]]; then
    aj_signal=$1
  elif [[ -n $aj_group ]]; then
    kill -s "$1" -- "-$aj_group" 2>/dev/null
  else
    exit $((128 + aj_numbers[$1]))
  fi
  case $1 in
    TERM) aj_left=${aj_left:-$((10#$aj_grace * 10))} ;;
    HUP | INT | QUIT) aj_rest=$((10#$aj_grace * 10)) ;;
  esac
}

aj_follow() { # [SECONDS]: wait until the first process of the group has ended; sets aj_status. False at the limit
  local aj_until='' aj_looks=0
  [[ -z ${1-} ]] || aj_until=$((SECONDS + 10#$1))
  # Not by `wait` alone: a signal that comes just before it would be noticed only when all is over.
  while kill -0 "$aj_group" 2>/dev/null; do
    if [[ -z $aj_left ]] && ((aj_looks++ < 10)); then
      aj_pause 0.02 # for what is over in a moment
      continue
    fi
    aj_pause 0.1
    if [[ -n $aj_left ]]; then
      ((aj_left-- > 0)) || kill -s KILL -- "-$aj_group" 2>/dev/null
    elif [[ -n $aj_until ]] && ((SECONDS >= aj_until)); then
      return 1
    fi
  done
  { wait "$aj_group"; } 2>/dev/null
  aj_status=$?
}

aj_lives() { # GROUP: does anything of it run
  local aj_wanted=$1 aj_file aj_stat
  kill -0 -- "-$aj_wanted" 2>/dev/null || return 1
  # Something is there. It may have ended all the same: whoever should take note of that does not always do so.
  for aj_file in /proc/[0123456789]*/stat; do
    aj_stat=''
    { read -r -d '' aj_stat <"$aj_file"; } 2>/dev/null
    # shellcheck disable=SC2086 # as above
    set -- ${aj_stat##*) }
    [[ ${3-} != "$aj_wanted" || $1 == [ZX] ]] || return 0
  done
  return 1
}

aj_end() { # GROUP: ask what is left of it to end, and make it when the time is over
  local aj_tenths=${aj_left:-${aj_rest:-20}} # 2 seconds for what nobody has asked to end before
  aj_lives "$1" || return 0
  [[ -n $aj_left$aj_rest ]] || kill -s TERM -- "-$1" 2>/dev/null
  while ((aj_tenths-- > 0)) && aj_lives "$1"; do aj_pause 0.1; done
  kill -s KILL -- "-$1" 2>/dev/null
  aj_tenths=20
  while ((aj_tenths-- > 0)) && aj_lives "$1"; do aj_pause 0.1; done
}

aj_leave() {
  [[ -z $aj_group ]] || aj_end "$aj_group"
  [[ -z $aj_setup_group ]] || aj_end "$aj_setup_group"
  [[ -z ${AJ_RANK_DIR-} ]] || rm -rf "$AJ_RANK_DIR"
}

# Setup: once on a node and attempt

aj_put() { # FILE WORDS: whole, or not at all
  (umask 077 && printf '%s\n' "$2" >"$1.$$" && mv -f "$1.$$" "$1")
}

aj_setup() {
  [[ -n ${AJ_SETUP-} ]] || return 0
  aj_barrier=$AJ_NODE_DIR/setup-$AJ_ATTEMPT_TOKEN
  ((10#$LOCAL_RANK)) || [[ -e $aj_barrier.end ]] || aj_prepare
  aj_wait_for_setup
  [[ ! -e $aj_barrier.env ]] || aj_changes=$aj_barrier.env
}

aj_prepare() { # runs the setup, and tells everyone how it ended
  local aj_name aj_watch aj_line=''
  declare -A aj_before=()
  aj_start_of $$
  aj_put "$aj_barrier.owner" "$$ $aj_start" || aj_die 110 "$AJ_NODE_DIR cannot be written"
  for aj_name in $(compgen -e); do aj_before[$aj_name]=${!aj_name}; done
  # All in one line, the first line of the setup: so its lines are counted as they were written.
  printf -v aj_watch 'aj_told=%q; ' "$aj_barrier"
  # shellcheck disable=SC2016 # it is the setup's shell that reads this
  {
    aj_watch+='aj_hand_over() { local aj_name IFS=$'\''\n'\''; '
    aj_watch+='if (($1)); then printf %s "${aj_line-}" >"$aj_told.line"; else for aj_name in $(compgen -e); do '
    aj_watch+='printf "%s=%s\0" "$aj_name" "${!aj_name-}"; done >"$aj_told.all"; fi; }; '
    aj_watch+='trap '\''aj_line=$LINENO'\'' ERR; trap '\''aj_hand_over $?'\'' EXIT; '
  }
  aj_launch aj-setup "$aj_watch$AJ_SETUP"
  if ! aj_follow "${AJ_SETUP_TIMEOUT-}"; then
    aj_end "$aj_group"
    { wait "$aj_group"; } 2>/dev/null # or bash would say how it ended
    aj_put "$aj_barrier.end" "failed 114"
    return
  fi
  aj_setup_group=$aj_group aj_group=''
  ((aj_status)) || [[ -z $aj_left ]] || aj_status=143 # asked to end, it ended well
  if ((aj_status)); then
    { read -r aj_line <"$aj_barrier.line"; } 2>/dev/null
    aj_put "$aj_barrier.end" "failed $aj_status $aj_line"
  else
    aj_find_changes
    aj_put "$aj_barrier.end" 'done'
  fi
}

aj_find_changes() { # what the setup exported, changed or took away, for every process of the node
  local aj_pair aj_name
  declare -A aj_after=()
  if [[ ! -e $aj_barrier.all ]]; then
    aj_say 'the setup has a trap on EXIT of its own, or became another program: what it exported is not handed on'
    return
  fi
  (
    umask 077
    exec >"$aj_barrier.env.$$"
    while IFS= read -r -d '' aj_pair; do
      aj_name=${aj_pair%%=*}
      aj_after[$aj_name]=1
      [[ -n ${aj_before[$aj_name]+there} && ${aj_before[$aj_name]} == "${aj_pair#*=}" ]] && continue
      aj_is_each_ones_own "$aj_name" || printf '%s\0' "$aj_pair"
    done <"$aj_barrier.all"
    for aj_name in "${!aj_before[@]}"; do
      [[ -n ${aj_after[$aj_name]-} ]] || aj_is_each_ones_own "$aj_name" || printf '%s\0' "$aj_name"
    done
  )
  rm -f "$aj_barrier.all"
  mv -f "$aj_barrier.env.$$" "$aj_barrier.env"
}

aj_is_each_ones_own() { # NAME
  case $1 in
    RANK | WORLD_SIZE | LOCAL_RANK | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | MASTER_ADDR | MASTER_PORT) ;;
    OMPI_* | PMI_* | PMIX_* | AJ_* | aj_*) ;;
    PWD | OLDPWD | SHLVL | _ | SHELLOPTS | BASHOPTS | BASH_VERSINFO | UID | EUID | PPID) ;;
    *) return 1 ;;
  esac
}

aj_apply() { # FILE
  local aj_pair
  while IFS= read -r -d '' aj_pair; do
    if [[ $aj_pair == *=* ]]; then
      # shellcheck disable=SC2163 # it holds a name and a value
      export "$aj_pair"
    else
      unset -v "$aj_pair"
    fi
  done <"$1"
}

aj_wait_for_setup() {
  local aj_verdict aj_code aj_line aj_pid aj_began aj_until=$((SECONDS + 10#$aj_limit))
  while :; do
    if { read -r aj_verdict aj_code aj_line <"$aj_barrier.end"; } 2>/dev/null; then
      [[ $aj_verdict != 'done' ]] || return 0
      ((aj_code != 114)) || aj_die 114 "the setup took longer than ${AJ_SETUP_TIMEOUT-} s"
      aj_die "$aj_code" "the setup ended with status $aj_code${aj_line:+ at its line $aj_line}"
    fi
    if { read -r aj_pid aj_began <"$aj_barrier.owner"; } 2>/dev/null; then
      if ! aj_start_of "$aj_pid" || [[ $aj_start != "$aj_began" ]]; then
        [[ ! -e $aj_barrier.end ]] || continue # it told its end, and then went
        aj_die 113 "process $aj_pid of this node died while it ran the setup"
      fi
    elif ((SECONDS >= aj_until)); then
      aj_die 113 "no process with LOCAL_RANK 0 came to this node within $aj_limit s"
    fi
    aj_pause 0.2
  done
}

aj_check_input() {
  local aj_name
  for aj_name in AJ_COMMAND AJ_NODE_DIR AJ_ATTEMPT_TOKEN; do
    [[ -n ${!aj_name-} ]] || aj_die 110 "$aj_name is not set"
  done
  [[ -d $AJ_NODE_DIR && -O $AJ_NODE_DIR ]] || aj_die 110 "$AJ_NODE_DIR is not a folder of ours"
  [[ $AJ_ATTEMPT_TOKEN != */* ]] || aj_die 110 'AJ_ATTEMPT_TOKEN is not a word'
  aj_grace=${AJ_TERM_GRACE:-25} aj_limit=${AJ_BOOTSTRAP_TIMEOUT:-1800}
  aj_whole AJ_TERM_GRACE "$aj_grace"
  aj_whole AJ_BOOTSTRAP_TIMEOUT "$aj_limit"
  [[ -z ${AJ_SETUP_TIMEOUT-} ]] || aj_whole AJ_SETUP_TIMEOUT "$AJ_SETUP_TIMEOUT"
}

aj_command() {
  aj_runs='command'
  aj_launch aj-command "$AJ_COMMAND" "$aj_changes"
  aj_follow
  exit "$aj_status"
}

trap aj_leave EXIT
trap 'aj_pass HUP' HUP
trap 'aj_pass INT' INT
trap 'aj_pass QUIT' QUIT
trap 'aj_pass USR1' USR1
trap 'aj_pass USR2' USR2
trap 'aj_pass TERM' TERM
aj_check_input
aj_find_ranks
aj_find_master
{ exec {aj_pipe}<> <(:); } 2>/dev/null || aj_pipe=''
aj_setup
aj_command
