"""The scripts of batch jobs, and the names of arrays: pure text, the same for every batch system
that runs sh.

Rule 1: whatever a user wrote is quoted for sh. The first line that is not a comment comes before
any of it, so no text of a user is ever read as an #SBATCH or #PBS directive.
Rule 2: an array of `run-7` ... `run-9` is named `run-7..9`, so each member is found by its own tag.
Its indices start at 0, since sites limit the largest index and not only the count.
"""

import re
import shlex
from collections.abc import Sequence

from windrow.queues.port import JobSpec, SpecError
from windrow.queues.spec import TAG, check_form

NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>[0-9]+)")
END_WORDS = ("EOF", "SCRIPT", "JOB", "WINDROW", "QUIT", "ZZZ")
ARRAY_NAME = re.compile(r"(?P<prefix>(?:.*[^0-9])?)(?P<first>[0-9]+)\.\.(?P<last>[0-9]+)")


def job_script(spec: JobSpec) -> str:
    """The script of one job: it becomes the command, which therefore gets the batch system's
    signals itself."""
    return f"#!/bin/sh\nexec {shlex.join(spec.command)}\n"


def placed_script(script: str, workdir: str) -> str:
    """The same script, going to its directory first, for batch systems that start every job in the
    user's home."""
    return script.replace("#!/bin/sh\n", f"#!/bin/sh\ncd {shlex.quote(workdir)} || exit 1\n", 1)


def array_script(specs: Sequence[JobSpec], index_variable: str) -> str:
    """The script of an array: each member becomes its own command, printing to its own file."""
    members = "".join(f"{index}) {_redirected(spec)} ;;\n" for index, spec in enumerate(specs))
    return f'#!/bin/sh\ncase "${index_variable}" in\n{members}esac\n'


def redirected_script(spec: JobSpec) -> str:
    """The script of one job that opens its output itself, if the batch system would read a
    meaning into its name."""
    return f"#!/bin/sh\n{_redirected(spec)}\n"


def _redirected(spec: JobSpec) -> str:
    return f"exec >{shlex.quote(spec.output)} 2>&1; exec {shlex.join(spec.command)}"


def array_name(specs: Sequence[JobSpec]) -> str:
    """The name of an array, from which every member's tag can be told. SpecError unless the jobs
    may form one."""
    first = specs[0]
    for spec in specs:
        check_form(spec)
        both = [
            (job.nodes, job.per_node, job.part, job.walltime_s, job.workdir, job.notice_s)
            for job in (first, spec)
        ]
        if both[0] != both[1]:
            raise SpecError(
                f"jobs {first.tag} and {spec.tag} differ in nodes, walltime or workdir: not one "
                "array"
            )
    match = NUMBERED.fullmatch(first.tag)
    if match is None:
        raise SpecError(f"the tag {first.tag!r} does not end in a number: not part of an array")
    last = NUMBERED.fullmatch(specs[-1].tag)
    name = f"{match['prefix']}{match['number']}..{last['number'] if last else ''}"
    if array_tags(name) != [spec.tag for spec in specs]:
        raise SpecError(
            f"the tags {first.tag} ... {specs[-1].tag} are not one prefix and consecutive numbers"
        )
    return name


def array_tags(name: str) -> list[str]:
    """The tags of the members of an array with this name, in order of their indices; empty if it is
    no such name."""
    match = ARRAY_NAME.fullmatch(name)
    if match is None:
        return []
    if match["first"].startswith("0"):
        width = len(match["first"])
    else:
        width = 0
    return [
        f"{match['prefix']}{number:0{width}d}"
        for number in range(int(match["first"]), int(match["last"]) + 1)
    ]


def tag_of(name: str, index: int | None) -> str | None:
    """The tag of a job with this name and array index; None if Windrow gave it no tag."""
    if index is None:
        if TAG.fullmatch(name):
            return name
        return None
    tags = array_tags(name)
    if index < len(tags):
        return tags[index]
    return None


def here_document(command: str, script: str) -> str:
    """How a person would type a command that reads its script from standard input."""
    # dash 0.5.12 loses a byte in a line that begins like the end's word and continues with a letter
    # outside ASCII.
    starts = {line[:1] for line in script.split("\n")}
    end = next((word for word in END_WORDS if word[0] not in starts), END_WORDS[0])
    while end in script.split("\n"):
        end += "_"
    return f"{command} <<'{end}'\n{script}{end}"
