#!/usr/bin/env python3
"""A budget for each agent: one that has spent more than a limit does not go on.

    raymond run WORKFLOW --plugin 'python3 examples/plugins/budget.py 0.50'

or, for a workflow that is to have it always, in its raymond.yaml:

    plugins:
      - { command: python3 ./budget.py 0.50, required: true }

raymond tells a plug-in what happens as lines of JSON on its stdin, and reads what it says as lines
of JSON on its stdout. `raymond schema` prints all there is to say. This one only answers: before a
turn starts it is told what the agent has spent so far, and stops the agent if that is the limit.
What is written to stderr is shown to whoever runs the workflow.
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
