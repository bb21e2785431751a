# Completion of council for fish. Put this into ~/.config/fish/completions/council.fish

function __council_next # the words that may follow
    switch "$argv[1]"
@NEXT@
    end
end

function __council_valued # whether a flag takes a value
    contains -- $argv[1] @VALUED@
end

function __council_at # whether the words so far lead here
    set -l at ''
    set -l skip ''
    for word in (commandline -opc)[2..]
        if test -n "$skip"
            set skip ''
        else if string match -q -- '-*' $word
            __council_valued $word; and set skip 1
        else if contains -- $word (__council_next "$at" | string split ' ')
            set at (string trim -- "$at $word")
        else if test -z "$at"
            set at '+words'
        end
    end
    contains -- "$at" $argv
end

function __council_runs
    council runs list 2>/dev/null </dev/null | string replace -r '^(\S+)\s+(.*)$' '$1\t$2'
end

@COMPLETE@
