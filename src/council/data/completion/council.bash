# Completion of council for bash. Put this into ~/.bashrc: source <(council completion bash)

_council_next() { # the words that may follow
    case $1 in
@NEXT@
    esac
}

_council_flags() {
    case $1 in
@FLAGS@
    esac
}

_council_values() { # of a flag: words, or where they come from; fails for a flag that takes none
    case $1 in
@VALUES@
    *) return 1 ;;
    esac
}

_council_offer() { # matching words; +files and +runs stand for what is there
    local offered=$1 cur=$2 word
    if [[ $offered == *+runs* ]]; then
        offered=${offered//+runs/$(council runs list 2>/dev/null </dev/null | cut -d ' ' -f 1)}
    fi
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(if [[ $offered == +files ]]; then compgen -f -- "$cur"; else compgen -W "${offered//+any/}" -- "$cur"; fi)
}

_council() {
    local cur=${COMP_WORDS[COMP_CWORD]} at='' skip='' word place values
    for ((place = 1; place < COMP_CWORD; place++)); do
        word=${COMP_WORDS[place]}
        if [[ $word == = ]]; then
            skip=1
        elif [[ $skip ]]; then
            skip=''
        elif [[ $word == -- ]]; then
            return
        elif [[ $word == -* ]]; then
            _council_values "$word" >/dev/null && skip=1
        elif [[ " $(_council_next "$at") " == *" $word "* ]]; then
            at=${at:+$at }$word
        elif [[ ! $at ]]; then
            at='+words'
        fi
    done
    COMPREPLY=()
    place=$((COMP_CWORD - 1))
    [[ $cur == = ]] && cur=''
    [[ ${COMP_WORDS[place]} == = ]] && place=$((place - 1))
    if values=$(_council_values "${COMP_WORDS[place]}"); then
        _council_offer "$values" "$cur"
    elif [[ $cur == -* ]]; then
        _council_offer "$(_council_flags "$at")" "$cur"
    else
        _council_offer "$(_council_next "$at")" "$cur"
    fi
}

complete -o bashdefault -o default -F _council council
