# bash completion for aj: `eval "$(aj completion bash)"`, or put this file among your completions.
_aj() {
  local line files=
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  local current="${COMP_WORDS[COMP_CWORD]}"
  [ "$current" = "=" ] && current=
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      $'\x1f'files) files=1 ;;
      $'\x1f'*) ;;
      *)
        line="${line%%$'\t'*}"
        COMPREPLY[${#COMPREPLY[@]}]="$line"
        ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
  if [ -n "$files" ]; then
    while IFS= read -r line; do
      COMPREPLY[${#COMPREPLY[@]}]="$line"
    done < <(compgen -f -- "$current")
    type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
  fi
  return 0
}
complete -F _aj aj
