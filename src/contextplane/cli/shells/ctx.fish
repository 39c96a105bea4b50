# Completion of ctx for fish: write it to ~/.config/fish/completions/ctx.fish.

function __ctx_candidates
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in ($before[1] __complete $before[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :folders
                __fish_complete_directories "$current" ''
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c ctx -e
complete -c ctx -f
@VERBS@
complete -c ctx -n 'not __fish_use_subcommand' -a '(__ctx_candidates)'
