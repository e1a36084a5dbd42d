#compdef aj
# zsh completion for aj: `eval "$(aj completion zsh)"`, or put this file as `_aj` into a folder of $fpath.
_aj() {
  local line prefix= files=
  local -a names says
  local begin=$'\x1f'begin
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case "$line" in
      "$begin"|'') ;;
      $'\x1f'prefix*) prefix="${line#*$'\t'}" ;;
      $'\x1f'files) files=1 ;;
      *)
        names+=("${line%%$'\t'*}")
        says+=("${line%%$'\t'*}  ${line#*$'\t'}")
        ;;
    esac
  done
  if [[ -n "$prefix" ]]; then
    compset -P '*='
  fi
  if (( ${#names} )); then
    compadd -l -d says -- "${names[@]}"
  fi
  if [[ -n "$files" ]]; then
    _files
  fi
}
if [[ "${funcstack[1]}" == _aj ]]; then
  _aj "$@"
else
  compdef _aj aj
fi
