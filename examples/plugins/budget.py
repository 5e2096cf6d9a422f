#!/usr/bin/env python3
"""A budget for each agent: an agent that has spent it is stopped.

    raymond run WORKFLOW --plugin 'python3 examples/plugins/budget.py 0.50'

or, for a workflow that always needs it, in its raymond.yaml:

    plugins:
      - { command: python3 ./budget.py 0.50, required: true }

raymond and a plug-in exchange messages as lines of JSON on the plug-in's stdin and stdout.
`raymond schema` prints the schema of all messages. This plug-in only answers consultations: before a
turn starts it is asked with the agent's cost so far, and stops an agent that has reached the limit.
Its stderr is shown to the person who runs the workflow.
"""

import json
import sys


def say(message):
    print(json.dumps(message), flush=True)


def verdict(question, limit):
    spent = question["agent_cost_usd"]
    if spent < limit:
        return {"verdict": "proceed"}
    reason = f"{question['agent']} has spent ${spent:.2f} of ${limit:.2f}"
    return {"verdict": "stop", "reason": reason}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: budget.py USD")
    limit = float(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            say({"type": "hello", "version": 2, "consult": ["start"]})
        elif message["type"] == "consult":
            answer = verdict(message["question"], limit)
            say({"type": "verdict", "id": message["id"], **answer})
        elif message["type"] == "finish":
            break


main()
