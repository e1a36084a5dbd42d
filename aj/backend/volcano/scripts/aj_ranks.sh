#!/bin/sh
# The ranks of a pod: from the index that the cluster gives each pod of a Task, never from a name.
#
# Reads    VC_TASK_INDEX, else VK_TASK_INDEX; AJ_RANK_BASE, AJ_NODES, AJ_PROCESSES_PER_NODE, AJ_WORLD_SIZE; with
#          AJ_LAUNCHER=processes also AJ_PROCESS_BASE
# Gives    AJ_TASK_INDEX, AJ_NODE_RANK, NODE_RANK. RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE only where they
#          mean what they mean to torch: where every node of the job has one process, or with AJ_LAUNCHER=processes
#          (then those of the first process of this node). What the job sets itself is kept.
# Ends     110 when something is missing or no number
#
# In words that every POSIX shell knows.

aj_say() {
  printf 'aj: %s\n' "$*" >&2
}

aj_die() { # CODE WORDS
  aj_say "$2"
  exit "$1"
}

aj_whole() { # NAME VALUE, sets aj_number; never used in arithmetic before it was looked at
  case $2 in
    '') aj_die 110 "$1 is not set" ;;
    *[!0123456789]* | ??????????*) aj_die 110 "$1 is not a whole number: $2" ;;
  esac
  aj_number=$2
  while :; do # a number that begins with 0 would be read as an octal one
    case $aj_number in
      0?*) aj_number=${aj_number#0} ;;
      *) break ;;
    esac
  done
}

aj_find_ranks() {
  if [ -z "${VC_TASK_INDEX-}${VK_TASK_INDEX-}" ]; then
    aj_die 110 'the pod has no index: neither VC_TASK_INDEX nor VK_TASK_INDEX is set (does the cluster run the env plugin?)'
  fi
  if [ -n "${VC_TASK_INDEX-}" ]; then
    aj_whole VC_TASK_INDEX "$VC_TASK_INDEX"
  else
    aj_whole VK_TASK_INDEX "$VK_TASK_INDEX"
  fi
  AJ_TASK_INDEX=$aj_number
  aj_whole AJ_RANK_BASE "${AJ_RANK_BASE-}"
  AJ_NODE_RANK=$((aj_number + AJ_TASK_INDEX))
  aj_whole AJ_NODES "${AJ_NODES-}"
  aj_nodes=$aj_number
  [ "$AJ_NODE_RANK" -lt "$aj_nodes" ] ||
    aj_die 110 "this is node $AJ_NODE_RANK, counted from 0, of a job of $aj_nodes: the job was scaled, or the index is wrong"
  NODE_RANK=${NODE_RANK:-$AJ_NODE_RANK}
  aj_whole AJ_PROCESSES_PER_NODE "${AJ_PROCESSES_PER_NODE-}"
  aj_processes=$aj_number
  aj_whole AJ_WORLD_SIZE "${AJ_WORLD_SIZE-}"
  export AJ_TASK_INDEX AJ_NODE_RANK NODE_RANK
  if [ "${AJ_LAUNCHER-}" = processes ]; then
    aj_find_processes
  elif [ "$aj_number" -eq "$aj_nodes" ] && [ "$aj_processes" -eq 1 ]; then
    RANK=${RANK:-$AJ_NODE_RANK} WORLD_SIZE=${WORLD_SIZE:-$aj_nodes} LOCAL_RANK=${LOCAL_RANK:-0}
    LOCAL_WORLD_SIZE=${LOCAL_WORLD_SIZE:-1}
    export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
  fi
}

aj_find_processes() { # sets aj_first, the rank of the first process of this node
  WORLD_SIZE=$aj_number LOCAL_WORLD_SIZE=$aj_processes LOCAL_RANK=0
  aj_whole AJ_PROCESS_BASE "${AJ_PROCESS_BASE-}"
  aj_first=$((aj_number + AJ_TASK_INDEX * aj_processes))
  RANK=$aj_first
  export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
}
