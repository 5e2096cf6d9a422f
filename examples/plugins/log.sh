#!/bin/sh
# A log of the steps of a run, for people: a line for each, at the end of a file.
#
#     raymond run WORKFLOW --plugin 'sh examples/plugins/log.sh steps.log'
#
# A plug-in reads lines of JSON on its stdin until there are no more. This one says hello without a
# wish, so it only looks on: it is never asked anything, and never waited for. It takes the few values
# it wants out of a line with nothing but the shell. `raymond schema host-message` says what else
# there is, and the journal with every record is "$RAYMOND_DIR/runs/$RAYMOND_RUN/journal.jsonl".

file=${1:?usage: log.sh FILE}

# The text or number that stands first in a line of JSON under a key; nothing, if none does.
field() {
    rest=${2#*"\"$1\":"}
    if [ "$rest" != "$2" ]; then
        rest=${rest#\"}
        printf '%s' "${rest%%[\",\}]*}"
    fi
}

echo '{"type":"hello","version":2}'
while IFS= read -r line; do
    case $line in
        *'"event":"step_finished"'*)
            at=$(field at "$line") agent=$(field agent "$line") step=$(field step "$line")
            state=$(field state "$line") tag=$(field tag "$line") target=$(field target "$line")
            printf '%s %s#%s: %s -> %s\n' \
                "$at" "$agent" "$step" "$state" "$tag${target:+ $target}" >>"$file"
            ;;
    esac
done
