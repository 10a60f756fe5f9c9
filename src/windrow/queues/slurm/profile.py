"""What a user may say of a Slurm in `windrow.toml`, checked.

    [queues.slurm]
    partition = "main"
    account = "science"
    qos = "normal"
    constraint = "avx512"
    cluster = "dusk"
    extra = ["--mail-type=END", "--licenses=matlab:1"]

Rule 1: options that say what a job is (name, nodes, time, output, ...) belong to Windrow and are
refused in `extra`.
Rule 2: sbatch reads SBATCH_ variables of the user's shell. Those that are keys here count if the
file says nothing; all others are kept from sbatch, and the user is told where they would have
changed the job.
Rule 3: of a `cluster` every command is told (-M): one that is not would look for its jobs on
another.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from windrow.errors import UserError

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*")
CONSTRAINT = re.compile(r"[A-Za-z0-9_(\[][A-Za-z0-9_.:=*&|,()\[\]-]*")
EXTRA = re.compile(r"--(?P<option>[a-z][a-z0-9-]+)(=[^\0\n]*)?")
KEYS = ("partition", "account", "qos", "constraint")
VARIABLES = {key: f"SBATCH_{key.upper()}" for key in KEYS}
# Other SBATCH_ variables that change nothing, since Windrow sets the same itself.
HARMLESS = (
    "ARRAY_INX", "DEBUG", "ERROR", "EXCLUSIVE", "IGNORE_PBS", "INPUT", "JOB_NAME", "MEM_PER_NODE",
    "NO_REQUEUE",
    "OPEN_MODE", "OUTPUT", "REQUEUE", "TIMELIMIT", "WAIT",
)  # fmt: skip
OWNED = (
    "account", "array", "chdir", "clusters", "constraint", "dependency", "error", "exclusive",
    "help", "hold",
    "ignore-pbs", "immediate", "input", "job-name", "mem", "nodes", "no-requeue", "open-mode",
    "output",
    "oversubscribe", "parsable", "partition", "qos", "quiet", "requeue", "test-only", "time",
    "usage", "version",
    "wait", "wrap",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SlurmProfile:
    """Where jobs go and whom they are charged to; empty means what the site does by default.

    `share`: "nodes", if jobs are to have whole ones whatever the partition allows, or "cores", if
    they are to have parts; empty: as the partition has it. `memory`: "default", if jobs are to say
    nothing of memory.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    cluster: str = ""
    extra: tuple[str, ...] = ()
    share: str = ""
    memory: str = ""

    def __post_init__(self) -> None:
        for name in ("partition", "account", "qos", "cluster"):
            _check(name, getattr(self, name), NAME, "one name of letters, digits and '_.:@+-'")
        _check("constraint", self.constraint, CONSTRAINT, "features joined by '&' or '|'")
        for option in self.extra:
            _check_extra(option)

    @property
    def options(self) -> list[str]:
        """The profile as options of sbatch."""
        named = [(name, getattr(self, name)) for name in KEYS]
        return [f"--{name}={value}" for name, value in named if value] + list(self.extra)

    @property
    def has_list(self) -> bool:
        """Whether it names the nodes that jobs may have; a file with them is for sbatch to read."""
        listed = self.value("nodelist")
        return bool(listed) and "/" not in listed

    def value(self, option: str) -> str:
        """What `extra` says for this option, the last time; empty if it says nothing."""
        given = [
            value
            for name, _, value in (one.partition("=") for one in self.extra)
            if name == f"--{option}"
        ]
        if given:
            return given[-1]
        return ""


def with_environment(
    profile: SlurmProfile, env: Mapping[str, str]
) -> tuple[SlurmProfile, dict[str, str]]:
    """The profile with what SBATCH_ variables say if it says nothing, and those of them that
    count."""
    counting = {}
    for key, name in VARIABLES.items():
        if (value := env.get(name)) and not getattr(profile, key):
            try:
                profile = SlurmProfile(**(asdict(profile) | {key: value}))
            except UserError as error:
                raise UserError(
                    f"{name}: {error}; unset it, or set {key} in windrow.toml"
                ) from None
            counting[name] = value
    return profile, counting


def ignored_variables(profile: SlurmProfile, env: Mapping[str, str]) -> list[str]:
    """The SBATCH_ variables that would change jobs if sbatch saw them."""
    given = [option.partition("=")[0] for option in profile.extra]
    named = {
        name: name.removeprefix("SBATCH_") for name in sorted(env) if name.startswith("SBATCH_")
    }
    named = {
        name: rest
        for name, rest in named.items()
        if name not in VARIABLES.values() and rest not in HARMLESS
    }
    return [
        name for name, rest in named.items() if f"--{rest.lower().replace('_', '-')}" not in given
    ]


def _check(name: str, value: str, pattern: re.Pattern[str], wanted: str) -> None:
    if value and not pattern.fullmatch(value):
        if name == "partition" and "," in value:
            wanted += f"; for jobs in any of several, leave it out and use --on {value}"
        raise UserError(f"{name} = {value!r} of the Slurm queue must be {wanted}")


def _check_extra(option: str) -> None:
    match = EXTRA.fullmatch(option)
    if match is None:
        raise UserError(
            f"extra option {option!r} of the Slurm queue must look like '--name' or '--name=value'"
        )
    # sbatch takes any unambiguous beginning of an option's name for the option.
    owned = [name for name in OWNED if name.startswith(match["option"])]
    if owned:
        key = {"clusters": "cluster"}.get(owned[0], owned[0] if owned[0] in KEYS else "")
        if key:
            fix = f"set {key} in the profile instead"
        else:
            fix = "Windrow sets it itself"
        raise UserError(f"extra option {option!r} of the Slurm queue is not allowed: {fix}")
