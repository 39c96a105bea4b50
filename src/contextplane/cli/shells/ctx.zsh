#compdef ctx
# Completion of ctx for zsh: write it to _ctx in a folder of fpath, such as ~/.zfunc.

_ctx() {
  local line name
  local -a verbs described values
  verbs=(
@VERBS@
  )
  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
    _describe -t verbs 'verb' verbs
    return
  fi
  for line in "${(@f)$("${words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
    case $line in
      :files) _files ;;
      :folders) _files -/ ;;
      *$'\t'*)
        name=${line%%$'\t'*}
        described+=("${name//:/\\:}:${line#*$'\t'}")
        ;;
      ?*) values+=("$line") ;;
    esac
  done
  (( $#described )) && _describe -t options 'option' described
  (( $#values )) && compadd -- "${values[@]}"
}

if [[ $funcstack[1] == _ctx ]]; then
  _ctx "$@"
else
  compdef _ctx ctx
fi
