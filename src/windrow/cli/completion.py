"""What could come next on a command line: commands, options, their values, runs and tasks of this
folder.

Each shell gets a few lines that ask `windrow` itself, so that they never have to change. An answer
with nothing in it means: names of files, which the shell knows better. Completion never fails, and
says nothing but words.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from windrow.errors import WindrowError

SCRIPTS = {
    "bash": """\
_windrow() {
    local IFS=$'\\n'
    COMPREPLY=($(windrow __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o filenames -F _windrow windrow
""",
    "zsh": """\
#compdef windrow
_windrow() {
    local -a found
    found=("${(@f)$(windrow __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _windrow windrow
""",
    "fish": """\
function __windrow_complete
    set -l found (windrow __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0; printf '%s\\n' $found; else; __fish_complete_path (commandline -ct); end
end
complete -c windrow -f -a '(__windrow_complete)'
""",  # noqa: E501
}
_MOST = 500
_OF_TASKS = ("task", "tasks", "what")
_OF_RUNS = ("run",)


def candidates(
    words: Sequence[str], commands: Sequence[str], parser: argparse.ArgumentParser | None
) -> list[str]:
    """What the last word could become; `parser` is that of the command that the first word
    names."""
    last = words[-1] if words else ""
    if len(words) <= 1 or parser is None:
        found: Iterator[str] = iter((*commands, "help"))
    else:
        found = _of_command(words, parser)
    return [word for word in dict.fromkeys(found) if word.startswith(last)][:_MOST]


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """What may be given to a command, by name."""
    return {
        name: action
        for action in parser._actions  # argparse tells of them in no other way
        if action.help is not argparse.SUPPRESS
        for name in action.option_strings
    }


def _of_command(words: Sequence[str], parser: argparse.ArgumentParser) -> Iterator[str]:
    before, last = words[-2], words[-1]
    options = options_of(parser)
    if before in options and options[before].nargs != 0:
        yield from _values(options[before], words)
    elif last.startswith("-"):
        yield from options
    else:
        for action in parser._actions:
            if not action.option_strings:
                yield from _values(action, words)


def _values(action: argparse.Action, words: Sequence[str]) -> Iterator[str]:
    """What this option or word may be; nothing if that is not a short list."""
    if action.choices is not None:
        yield from map(str, action.choices)
    elif action.dest in _OF_RUNS:
        yield from _runs()
    elif action.dest in _OF_TASKS:
        yield from _tasks(words)


def _runs() -> Iterator[str]:
    from windrow.app.runs import all_runs

    try:
        names = [run.name for run in all_runs()]
    except (WindrowError, OSError):
        return
    yield from reversed(names)


def _tasks(words: Sequence[str]) -> Iterator[str]:
    """Those of the run that the line names, else of the latest."""
    from windrow.app.runs import find_run
    from windrow.records.runnable_file import read_runnable

    name = None
    if "--run" in words[:-1]:
        name = words[words.index("--run") + 1]
    try:
        yield from read_runnable(find_run(name).workflow).workflow.ids
    except (WindrowError, OSError):
        return
