"""Draws tour.svg: what a terminal shows of a run of the tour. Usage, in the repository: python3 docs/pictures/tour.py RAYMOND

RAYMOND is the program. It runs workflows/tour with its script, so no model is called and each run shows the same.
"""

import html
import os
import subprocess
import sys
import tempfile

COMMANDS = ["raymond run workflows/tour --agent scripted", "raymond tree tour", "raymond costs tour"]
HIDDEN = {"raymond run workflows/tour --agent scripted": ["--id", "tour"]}
COLUMNS, LINE, CHARACTER, MARGIN = 104, 18, 7.8, 18
STATES = 6


def output(program, command, place):
    environment = {"PATH": os.environ["PATH"], "HOME": place, "RAYMOND_DIR": place + "/runs", "RAYMOND_TRUST": "true"}
    arguments = command.split()[1:] + HIDDEN.get(command, [])
    ended = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.replace(os.getcwd(), "~/raymond").splitlines()


def shown(program):
    with tempfile.TemporaryDirectory() as place:
        lines = {command: output(program, command, place) for command in COMMANDS}
    run, tree, costs = (lines[command] for command in COMMANDS)
    # The order in which forked agents end is not the same each time, so only the first agent's end is shown.
    yield from [("command", COMMANDS[0]), ("text", "…"), ("text", run[-1])]
    yield ("text", "")
    yield from [("command", COMMANDS[1]), *(("text", line) for line in tree[:8])]
    yield ("text", "")
    yield from [("command", COMMANDS[2]), *(("text", line) for line in costs[: 4 + STATES]), ("text", "…")]


def drawn(rows):
    rows = list(rows)
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, len(rows) * LINE + 2 * MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height}">'
    yield "<title>A run of the tour: its agents and its costs</title>"
    yield "<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#e2e8f0;white-space:pre}.command{fill:#7dd3fc}</style>"
    yield f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#0f172a"/>'
    for number, (kind, line) in enumerate(rows):
        line = ("$ " if kind == "command" else "") + line
        line = line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"
        if line:
            y = MARGIN + number * LINE + 13
            yield f'<text class="{kind}" x="{MARGIN}" y="{y}" xml:space="preserve">{html.escape(line)}</text>'
    yield "</svg>"


print("\n".join(drawn(shown(sys.argv[1]))))
