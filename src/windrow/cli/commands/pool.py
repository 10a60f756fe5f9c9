"""`windrow pool`: serve a pool of processors that many workflows share; stop it; take a workflow
out of it."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import node_count, place, positive, seed, size_bytes
from windrow.errors import OutsideError, UserError

if TYPE_CHECKING:
    from windrow.pool.folder import PoolFolder
    from windrow.pool.view import PoolView


_BIRTH_S = 60.0
_STOP_S = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from windrow.streams.help_texts import POOL_POLICY_FORMS, SELECTION_MEANINGS

    options.add_listings(parser, {"policies": POOL_POLICY_FORMS, "selections": SELECTION_MEANINGS})
    add = options.adder(parser)
    add("pool NAME", place, help="name of the pool, or its folder (with a /)")
    add("--policy P", help="see below (default: bf)")
    add("--selection S", help="which task of a workflow first, see below (default: random)")
    add("--nodes N", node_count, help="number of nodes (default: 1, or the allocation's)")
    add("--cores C", positive, help="slots per node (default: its cores)")
    add("--memory SIZE", size_bytes, help="memory per node, e.g. 16GB (default: no limit)")
    add("--seed N", seed, help="seed of random selection (default: 0)")
    add("--detach", action="store_true", help="return at once; the pool runs in the background")
    ask = options.adder(parser.add_mutually_exclusive_group())
    ask("--stop", action="store_true", help="stop the pool")
    ask("--cancel WORKFLOW", positive, help="cancel the workflow with this number")


def run(args: argparse.Namespace) -> int:
    """Serve, or ask the one who serves."""
    from windrow.pool.folder import find_pool, pool_at

    if args.stop:
        return _stop(find_pool(args.pool))
    if args.cancel:
        return _cancel(find_pool(args.pool), args.cancel)
    from windrow.streams import find_policy, find_selection

    if args.policy is not None:  # checked before anything is made
        find_policy(args.policy)
    if args.selection is not None:
        find_selection(args.selection)
    wanted = {
        name: getattr(args, name) for name in ("policy", "selection", "nodes", "cores", "seed")
    }
    wanted["memory_bytes"] = args.memory
    if args.detach:
        return _detach(pool_at(args.pool), wanted)
    from windrow.pool.server import serve

    return serve(pool_at(args.pool), wanted, terminal.say)


def _detach(folder: PoolFolder, wanted: dict[str, Any]) -> int:
    """Let a process of its own serve the pool; return when it does."""
    from windrow.records.lock import holder_of

    if holder := holder_of(folder.lock):
        raise UserError(f"pool {folder.name} is already running ({holder}); --stop stops it")
    folder.make()
    options = [
        f"--{name.removesuffix('_bytes')}={value}"
        for name, value in wanted.items()
        if value is not None
    ]
    command = [sys.executable, "-P", "-m", "windrow.cli.main", "pool", str(folder.path), *options]
    began_s = time.time()
    with folder.log.open("ab") as log:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    while server.poll() is None and time.time() < began_s + _BIRTH_S:
        if _opened_s(folder) >= began_s:
            terminal.say(
                f"pool {folder.name} runs in process {server.pid}; windrow status --pool "
                f"{folder.address}"
            )
            return 0
        time.sleep(0.05)
    said = folder.log.read_text(errors="replace").strip().rpartition("\n")[2]
    raise OutsideError(f"pool {folder.name} failed to start; last line of {folder.log}: {said}")


def _opened_s(folder: PoolFolder) -> float:
    """When the pool was last opened; 0 if it never was."""
    from windrow.pool.view import PoolView

    if not folder.journal.exists():
        return 0.0
    told = PoolView(folder)
    told.close()
    return float(told.facts.get("opened_s", 0.0))


def _stop(folder: PoolFolder) -> int:
    from windrow.records.lock import holder_of

    if holder_of(folder.lock) is None:
        terminal.say(f"pool {folder.name} is not running; nothing to stop")
        return 0
    folder.wish("stop")
    end = time.monotonic() + _STOP_S
    while holder_of(folder.lock) is not None:
        if time.monotonic() > end:
            raise OutsideError(
                f"pool {folder.name} is still running ({holder_of(folder.lock)}); kill that process"
            )
        time.sleep(0.05)
    terminal.say(f"pool {folder.name} is stopped; windrow pool {folder.address} continues it")
    return 0


def _cancel(folder: PoolFolder, number: int) -> int:
    """Ask for it, and wait until it has left if someone serves the pool."""
    from windrow.pool.view import PoolView

    told = PoolView(folder)
    if not folder.workflow(number).exists():
        raise UserError(
            f"pool {folder.name} has no workflow {number}; windrow status --pool "
            f"{folder.address} lists them"
        )
    if _outcome(told, number):
        terminal.say(f"workflow {number} is {_outcome(told, number)}; nothing to cancel")
        return 0
    folder.wish(f"cancel-{number}")
    while told.holder is not None and not _outcome(told, number):
        time.sleep(0.05)
        told.refresh()
    now = f"is {_outcome(told, number)}"
    if not _outcome(told, number):
        now = f"will be cancelled as soon as pool {folder.name} runs again"
    terminal.say(f"workflow {number} {now}")
    return 0


def _outcome(told: PoolView, number: int) -> str:
    found = told.story.workflows.get(number)
    if found is not None:
        return found.outcome
    return ""
