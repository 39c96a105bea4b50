# Completion of ctx for bash: put eval "$(ctx completion bash)" into ~/.bashrc.

_ctx_verbs="@VERBS@"

_ctx() {
  local rest="${COMP_LINE:0:COMP_POINT}" joined="" piece="" head="" line i
  local -a words=()
  # bash splits words at : = and @, which stand in references: put them together again.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece="${COMP_WORDS[i]}"
    if [[ "$rest" == [[:space:]]* ]]; then
      words+=("$joined")
      joined=""
      rest="${rest#"${rest%%[![:space:]]*}"}"
    fi
    ((i == COMP_CWORD)) && piece="$rest"
    head="$joined"
    joined+="$piece"
    rest="${rest#"$piece"}"
  done
  words+=("$joined")
  COMPREPLY=()
  if ((${#words[@]} == 2)) && [[ "$joined" != -* ]]; then
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$_ctx_verbs" -- "$joined")
    return 0
  fi
  while IFS= read -r line; do
    case "$line" in
      :files)
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$piece")
        ;;
      :folders)
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$piece")
        ;;
      *)
        line="${line%%$'\t'*}"
        COMPREPLY+=("${line#"$head"}")
        ;;
    esac
  done < <("$1" __complete "${words[@]:1}" 2>/dev/null)
  return 0
}

complete -F _ctx ctx
