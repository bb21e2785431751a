#compdef council
# Completion of council for zsh. Put this into ~/.zshrc, behind compinit: source <(council completion zsh)

_council_next() { # the words that may follow
    case $1 in
@NEXT@
    esac
}

_council_flags() { # each with what it does
    case $1 in
@DESCRIBED@
    esac
}

_council_values() { # of a flag: words, or where they come from; fails for a flag that takes none
    case $1 in
@VALUES@
    *) return 1 ;;
    esac
}

_council_offer() { # matching words; +files and +runs stand for what is there
    local offered=$1
    [[ $offered == +files ]] && { _files; return }
    [[ $offered == *+runs* ]] && offered=${offered//+runs/$(council runs list 2>/dev/null </dev/null | cut -d ' ' -f 1)}
    local -a found=(${=offered//+any/})
    compadd -a found
}

_council() {
    local at='' skip='' word flag values
    local -i place
    local -a described
    for ((place = 2; place < CURRENT; place++)); do
        word=${words[place]}
        if [[ -n $skip ]]; then
            skip=''
        elif [[ $word == -- ]]; then
            _files
            return
        elif [[ $word == -* ]]; then
            _council_values $word >/dev/null && skip=1
        elif [[ " $(_council_next "$at") " == *" $word "* ]]; then
            at=${at:+$at }$word
        elif [[ -z $at ]]; then
            at='+words'
        fi
    done
    flag=${words[CURRENT - 1]}
    if [[ $PREFIX == --*=* ]]; then
        flag=${PREFIX%%=*}
        compset -P '*='
    fi
    if values=$(_council_values $flag); then
        _council_offer $values
    elif [[ $PREFIX == -* ]]; then
        described=("${(@f)$(_council_flags "$at")}")
        _describe -o flag described
    else
        _council_offer "$(_council_next "$at")"
        [[ -z $at || $at == +words ]] && _files
    fi
}

if [[ $funcstack[1] == _council ]]; then
    _council "$@"
else
    compdef _council council
fi
