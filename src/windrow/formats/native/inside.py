"""What the command of a task runs in: lines of a shell, modules, a venv, a conda environment, a
container.

All of it becomes words in front of the command, which find on the node what is there to run it
with. The command itself stays as it is, and no value of the file is code but `setup`, which is
meant to be. Law: what is missing on a node is said in one line on standard error, with exit code
127.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from windrow.model.runnable import Made
from windrow.places import user_folder

RUNTIMES = ("apptainer", "singularity", "podman", "docker", "ch-run")
"""What can run containers, in the order in which it is looked for."""

ENVIRONMENTS = ".windrow-environments"
"""Below the user's data: what is in it is Windrow's own."""

_FIND_MODULE = """\
if ! command -v module > /dev/null 2>&1; then
  for init in "${MODULESHOME:-/nowhere}/init/bash" /etc/profile.d/modules.sh \\
    /etc/profile.d/lmod.sh /etc/profile.d/z00_lmod.sh /usr/share/modules/init/bash \\
    /usr/share/lmod/lmod/init/bash; do
    if [ -r "$init" ]; then . "$init"; break; fi
  done
fi
"""
_NEED_MODULE = """\
if ! command -v module > /dev/null 2>&1; then
  echo "windrow: there is no command module on $(hostname)" >&2; exit 127
fi
"""
_FIND_CONDA = """\
for tool in conda mamba micromamba none; do
  if command -v "$tool" > /dev/null 2>&1; then break; fi
done
if [ "$tool" = none ]; then
  echo "windrow: there is no conda, mamba or micromamba on $(hostname)" >&2; exit 127
fi
"""
_FIND_RUNTIME = """\
for tool in %s none; do
  if command -v "$tool" > /dev/null 2>&1; then break; fi
done
if [ "$tool" = none ]; then
  echo "windrow: there is no %s on $(hostname) to run containers with" >&2; exit 127
fi
"""
_RUN = """\
case "$tool" in
apptainer | singularity)
  case "$image" in /* | *://*) ;; *) image="docker://$image" ;; esac
  set -- "$image" "$@"
  for place in "${places[@]}"; do set -- --bind "$place" "$@"; done
  exec "$tool" exec --pwd "$PWD" ${gpus:+--nv} "${options[@]}" "$@" ;;
podman | docker)
  set -- "$image" "$@"
  for place in "${places[@]}"; do set -- -v "$place:$place" "$@"; done
  for name in "${names[@]}" ${!WINDROW_*}; do set -- -e "$name" "$@"; done
  if [ "$tool" = docker ]; then set -- --user "$(id -u):$(id -g)" ${gpus:+--gpus all} "$@"
  else set -- ${gpus:+--device nvidia.com/gpu=all} "$@"; fi
  exec "$tool" run --rm -w "$PWD" "${options[@]}" "$@" ;;
*)
  export USER="${USER:-$(id -un)}"
  set -- "$image" -- "$@"
  for place in "${places[@]}"; do set -- --bind="$place:$place" "$@"; done
  exec ch-run --cd="$PWD" "${options[@]}" "$@" ;;
esac
"""


class Container(NamedTuple):
    """An image, by what it is run (empty: what is there), and with which options."""

    image: str
    runtime: str = ""
    options: tuple[str, ...] = ()


class Inside(NamedTuple):
    """What a file says of it. `venv` and `conda`: a file that says what is to be in it, or where it
    is; `conda` may be a name."""

    setup: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    venv: str = ""
    conda: str = ""
    container: Container | None = None

    def words(
        self, base: str, places: Sequence[str], names: Sequence[str], *, has_gpus: bool
    ) -> tuple[str, ...]:
        """What stands before the command. `base`: the folder of the file, `places`: what a
        container has to see, `names`: of variables that it is to have."""
        script = ""
        if self.setup or self.modules:
            script += _FIND_MODULE
        if self.modules:
            script += _NEED_MODULE
        for module in map(shlex.quote, self.modules):
            script += f"module load {module} || exit 1\n"
        if self.setup:
            script += "set -e\n" + "".join(f"{line}\n" for line in self.setup) + "set +e\n"
        if self.venv:
            made = self.made(base)
            script += _enter_venv(made.path if made else self._at(base, self.venv))
        script += 'set -- "$0" "$@"\n'
        if self.conda:
            script += _FIND_CONDA + self._conda(base)
        elif self.container is not None:
            script += self._contained(base, places, names, has_gpus=has_gpus)
        else:
            script += 'exec "$@"\n'
        return ("bash", "-c", script)

    @staticmethod
    def _at(base: str, name: str) -> str:
        return str(Path(base, name))

    def made(self, base: str) -> Made | None:
        """What has to be made before the run, and from which file; None: nothing."""
        for kind, source in (("venv", self.venv), ("conda", self.conda)):
            path = Path(base, source)
            if source and path.is_file():
                named = hashlib.blake2b(path.read_bytes(), digest_size=8)
                named.update(f"{kind} {sys.version_info[:2]}".encode())
                folder = user_folder("data") / ENVIRONMENTS / f"{kind}-{named.hexdigest()}"
                return Made(kind, str(folder), str(path))
        return None

    def _conda(self, base: str) -> str:
        made = self.made(base)
        if made is not None:
            where = f"-p {shlex.quote(made.path)}"
        elif "/" in self.conda:
            where = f"-p {shlex.quote(self._at(base, self.conda))}"
        else:
            where = f"-n {shlex.quote(self.conda)}"
        return (
            f'if [ "$tool" = micromamba ]; then exec "$tool" run {where} "$@"; fi\n'
            f'exec "$tool" run --no-capture-output {where} "$@"\n'
        )

    def _contained(
        self, base: str, places: Sequence[str], names: Sequence[str], *, has_gpus: bool
    ) -> str:
        assert self.container is not None
        image, runtime, options = self.container
        if Path(base, image).exists():
            image = self._at(base, image)
        tools = (runtime,) if runtime else RUNTIMES
        lists = {"places": places, "names": names, "options": options}
        script = _FIND_RUNTIME % (" ".join(tools), " or ".join(tools))
        script += f"image={shlex.quote(image)}\ngpus={'yes' if has_gpus else ''}\n"
        for name, items in lists.items():
            script += f"{name}=({' '.join(map(shlex.quote, items))})\n"
        return script + _RUN


NOWHERE = Inside()
"""The command runs as it is."""


def _enter_venv(path: str) -> str:
    quoted = shlex.quote(path)
    return (
        f"if ! [ -x {quoted}/bin/python ]; then\n"
        f"  echo windrow: there is no venv in {shlex.quote(quoted)} >&2; exit 127\nfi\n"
        f"export VIRTUAL_ENV={quoted}\nexport PATH={quoted}/bin:$PATH\nunset PYTHONHOME\n"
    )
