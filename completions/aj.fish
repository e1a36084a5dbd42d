# fish completion for aj: `aj completion fish | source`, or put this file into ~/.config/fish/completions.
function __aj_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l prefix ''
    set -l program $words[1]
    set -e words[1]
    for line in ($program __complete $words $current 2>/dev/null)
        if string match -q -- \x1f'prefix*' $line
            set prefix (string split -m 1 -- \t $line)[2]
        else if test "$line" = \x1f'files'
            __fish_complete_path $current
        else if not string match -q -- \x1f'*' $line
            printf '%s%s\n' $prefix $line
        end
    end
end
complete -c aj -f -a '(__aj_complete)'
