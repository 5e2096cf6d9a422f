#!/bin/sh
# A log of the steps of a run, for people: one line for each, appended to a file.
#
#     raymond run WORKFLOW --plugin 'sh examples/plugins/log.sh steps.log'
#
# A plug-in reads lines of JSON on its stdin until there are no more. This one greets without `consult`,
# so it only observes: it is never consulted, and the run never waits for it. The shell alone extracts
# the few values it needs. `raymond schema host-message` describes all messages, and the journal with every
# record is "$RAYMOND_DIR/runs/$RAYMOND_RUN/journal.jsonl".

file=${1:?usage: log.sh FILE}

# Prints the first text or number under a key in a line of JSON; nothing if there is none.
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
