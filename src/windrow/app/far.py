"""Sites whose files are not those of the folder in which a run was started: reached, settled, and
put together.

To settle a place is to find a Python there, to put the agent beside it, and to make the run's
folder. What was found is a fact of the run, so that it continues when a place cannot be reached.
"""

import base64
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import quote

from windrow.agent.folder import RunFolder
from windrow.agent.porter import MARK
from windrow.agent.travel import archive
from windrow.app.sites import Reached
from windrow.data.catalogue import HOME, Catalogue, Paths, paths_of
from windrow.data.mirror import Ask, Mirror, through
from windrow.data.rsync import Rsync
from windrow.errors import UserError, WindrowError
from windrow.forecast.best_effort import Remembered
from windrow.forecast.waits import History
from windrow.manager.transfers import Transfers
from windrow.model import Runnable
from windrow.model.site import Site
from windrow.queues.apart import apart
from windrow.queues.command import Answer
from windrow.queues.port import QueueError
from windrow.queues.ssh import Ssh

DEFAULT_FOLDER = "$HOME/.windrow"
_ASK_S = 60.0
_SETTLE = """\
mkdir -p "{folder}" && cd "{folder}" && umask 077 && mkdir -p runs || exit 4
if mkdir "runs/{run}" 2>/dev/null; then : > "runs/{run}/{mark}" && mkdir "runs/{run}/files" || exit 4; fi
[ -f "runs/{run}/{mark}" ] || {{ echo "runs/{run} is not a run's folder; move it" >&2; exit 4; }}
mkdir -p "runs/{run}/files" && pwd -P || exit 4
for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
    if command -v $python >/dev/null && $python -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
        $python -c 'import sys; print(sys.executable)'
        [ -f "{agent}" ] && echo has || echo lacks
        df -Pk . | awk 'NR > 1 {{print $4 * 1024}}'
        exit 0
    fi
done
python3 -V >&2
exit 3"""  # noqa: E501
_PUT = 'cd "{folder}" && umask 077 && base64 -d > "{agent}.$$" && mv "{agent}.$$" "{agent}"'

connection = cache(Ssh)
"""The one to this host, with this setup."""


def settle(site: Site, run: str) -> dict[str, Any]:
    """Make a place ready for this run. QueueError if it does not answer, UserError if it
    cannot be used."""
    folder = _folder_for_shell(site)
    agent, content = archive()
    ssh = connection(site.host, site.setup)
    answer = ssh.script(_SETTLE.format(folder=folder, run=run, agent=agent, mark=MARK))
    _check_settled(site, folder, answer)
    found, python, has, *room = answer.out.rstrip("\n").split("\n")
    if has == "lacks":
        put = ssh.script(
            _PUT.format(folder=found, agent=agent), base64.b64encode(content).decode("ascii")
        )
        if not put.is_good:
            raise (QueueError if put.code is None else UserError)(
                f"{site.name}: the agent cannot be put there: {put.words}"
            )
    told: dict[str, Any] = {
        "host": site.host,
        "data_host": site.data_host or site.host,
        "setup": site.setup,
    }
    if room:
        told["room_bytes"] = int(float(room[0]))
    there = f"{found}/runs/{run}"
    return told | {"there": there, "agent": (python, "-I", f"{found}/{agent}")}


def _folder_for_shell(site: Site) -> str:
    """As it stands between double quotes."""
    folder = re.sub(r"^~(?=/|$)", "$HOME", site.folder or DEFAULT_FOLDER)
    if re.search(r'["`\\\n]|\$\(', folder):
        raise UserError(
            f"folder = {site.folder!r} of site {site.name}: write a plain path, or one such as "
            "$SCRATCH/windrow"
        )
    return folder


def _check_settled(site: Site, folder: str, answer: Answer) -> None:
    if answer.code is None:
        raise QueueError(f"{site.host}: {answer.words}")
    if answer.code == 3:
        fix = 'load one in setup: setup = "module load python"'
        raise UserError(
            f"site {site.name} has no Python 3.9 or newer "
            f"({answer.words or 'no python3 at all'}); {fix}"
        )
    if not answer.is_good:
        raise UserError(f"folder {folder} of site {site.name} cannot be used: {answer.words}")


def porter(place: Mapping[str, Any]) -> Ask:
    """What asks the porter of a settled place."""
    ssh = connection(place["host"], place["setup"])
    argv = [*place["agent"], "porter", place["there"]]

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        answer = ssh(argv, stdin=json.dumps(request), env={}, timeout_s=_ASK_S)
        if not answer.is_good:
            raise QueueError(f"{ssh.host}: {answer.words}")
        reply: dict[str, Any] = json.loads(answer.out)
        if "trouble" in reply:
            raise QueueError(f"{ssh.host}: {reply['trouble']}")
        return reply

    return ask


def far_facts(sites: Sequence[Reached], runnable: Runnable, uid: str) -> dict[str, Any]:
    """What a run has to know of places with files of their own, which are settled."""
    run = re.sub(r"[^A-Za-z0-9._-]+", "-", runnable.workflow.name)[:40] + f"-{uid}"
    first = {one.site.files: one.site for one in reversed(sites) if one.site.files}
    places = {name: settle(site, run) for name, site in first.items()}
    return {"root": paths_of(runnable, os.path.isfile).root, "run": run, "places": places}


def transfers_of(
    far: Mapping[str, Any],
    folder: RunFolder,
    runnable: Runnable,
    sites: Sequence[Reached],
    past: History | None = None,
) -> tuple[list[Reached], Transfers]:
    """What deals with the files of a run at such places; and the sites, whose queues deliver them.

    `past` is where the speeds of links are found and kept, by their hosts: names of places differ
    between projects.
    """
    mirrors = dict[str, Mirror]()
    ways = dict[str, tuple[Ssh, str]]()
    for name, place in far["places"].items():
        with suppress(QueueError):  # of a later Windrow, the agent is another
            place.update(
                settle(next(one.site for one in sites if one.site.files == name), far["run"])
            )
        mine = RunFolder(folder.path / "far" / quote(name, safe=""))
        mirrors[name] = Mirror(name, mine, porter(place), place["there"], tuple(place["agent"]))
        ways[name] = connection(place["data_host"], ""), f"{place['there']}/files"
    delivering = [_delivering(one, mirrors, far["places"]) for one in sites]
    hosts = {HOME: ""} | {name: place["data_host"] for name, place in far["places"].items()}
    catalogue = _catalogue(paths_of(runnable, os.path.isfile, far["root"]), hosts, past)

    def keep() -> None:
        if past is not None:
            seen = [(hosts[a], hosts[b], took) for (a, b), took in catalogue.s_per_mb.items()]
            Remembered(past.record_links, "speeds of links").keep(seen)

    return delivering, Transfers(catalogue, mirrors, Rsync(far["root"], ways), keep)


def _delivering(one: Reached, mirrors: Mapping[str, Mirror], places: Mapping[str, Any]) -> Reached:
    """The same site, whose queue brings to its jobs what they read, if it has files of its own."""
    mirror = mirrors.get(one.site.files)
    if mirror is None:
        return one
    rooms = (one.site.room_bytes, places[one.site.files].get("room_bytes"))
    least = min((room for room in rooms if room is not None), default=None)
    queue = apart(one.queue, {"place": one.place, **through(mirror, one.queue)})
    return replace(one, site=replace(one.site, room_bytes=least), queue=queue)


def planned_transfers(
    sites: Sequence[Reached], runnable: Runnable, past: History | None = None
) -> Transfers:
    """What would deal with the files of a run at places that are not settled: it knows how long
    they take, and moves none."""
    there = {one.site.files: one.site for one in reversed(sites) if one.site.files}
    hosts = {HOME: ""} | {name: site.data_host or site.host for name, site in there.items()}
    catalogue = _catalogue(paths_of(runnable, os.path.isfile), hosts, past)
    return Transfers(catalogue, {}, Rsync(catalogue.paths.root, {}))


def _catalogue(paths: Paths, hosts: Mapping[str, str], past: History | None) -> Catalogue:
    """Which files a run reads, how large they are, and how fast links to these places were."""
    catalogue = Catalogue(paths)
    for path in catalogue.unmade:
        with suppress(OSError):
            catalogue.sizes[path] = Path(paths.root, path).stat().st_size
    if past is not None:
        with suppress(WindrowError):  # (Said when waits are asked for.)
            seen = past.links()
            links = ((a, b) for a, b in permutations(hosts, 2) if (hosts[a], hosts[b]) in seen)
            catalogue.s_per_mb |= {(a, b): seen[hosts[a], hosts[b]] for a, b in links}
    return catalogue
