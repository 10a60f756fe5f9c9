"""Pilots by the rules of HyperQueue's automatic allocation; the standard library only, and quick to
start.

    python shared_pilots.py serve CORES MINUTES OPTION ...    here are work.json and done/
    python shared_pilots.py work HOST PORT CORES END_S

HyperQueue itself is on PyPI without its command `hq`, which alone can allocate, so its rules are
played: while tasks are ready that no worker has, there is one allocation in the queue (a backlog of
one); a worker has all cores of its allocation, takes no task that could outlast it, and ends when
it has had nothing to do for so long, or all is done. Its own start is that of a Python without
packages, which takes a little longer than that of `hq`.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

IDLE_S = 30.0
"""HyperQueue's default is five minutes, for which nodes would be paid."""


class Server:
    """Who waits for what, and what runs."""

    def __init__(self, work: dict, cores: int, minutes: int, options: list) -> None:  # type: ignore[type-arg]
        self.work = work
        self.cores = cores
        self.minutes = minutes
        self.options = options
        self.open = set(work)  # not yet given to a worker
        self.done: set[str] = set()
        self.failed: list[str] = []
        self.lock = threading.Condition()
        self.hub = socket.create_server(("127.0.0.1", 0))

    def ready(self) -> list[str]:
        """Tasks whose parents are done, in the order of the file."""
        return [
            name
            for name, row in self.work.items()
            if name in self.open and all(parent in self.done for parent in row["after"])
        ]

    def serve(self) -> int:
        """Until all is done, or something failed."""
        threading.Thread(target=self._accept, daemon=True).start()
        while len(self.done) < len(self.work) and not self.failed:
            with self.lock:
                is_needed = bool(self.ready())
            if is_needed and not self._queued():
                self._allocate()
            time.sleep(1.0)
        subprocess.run(["scancel", "--name=pilot", "--me"], check=False)
        return 1 if self.failed else 0

    def _queued(self) -> bool:
        argv = ["squeue", "-h", "--me", "--name=pilot", "--states=pending"]
        return bool(subprocess.run(argv, capture_output=True, check=True).stdout)

    def _allocate(self) -> None:
        host, port = self.hub.getsockname()
        words = [sys.executable, "-S", __file__, "work", host, str(port), str(self.cores)]
        line = f"exec {' '.join(words)} $(($(date +%s) + {60 * self.minutes}))"
        named = ("-J", "pilot", f"-t{self.minutes}", "-o", "/dev/null", "--wrap", line)
        subprocess.run(["sbatch", *self.options, *named], check=True, stdout=subprocess.DEVNULL)

    def _accept(self) -> None:
        while True:
            link, _ = self.hub.accept()
            threading.Thread(target=self._hear, args=(link,), daemon=True).start()

    def _hear(self, link: socket.socket) -> None:
        """A slot of a worker: it says how long it may still run, is given a task, says how it
        ended."""
        running = None
        try:
            with link, link.makefile("rw") as talk:
                for line in talk:
                    word, value = line.split()
                    with self.lock:
                        if word == "ended":
                            self._note(running, int(value))
                            running = None
                        else:
                            running = self._give(float(value))
                    if word == "free":
                        given = self.work[running]["words"] if running else []
                        talk.write(json.dumps(given) + "\n")
                        talk.flush()
        finally:
            if running:  # its worker is gone
                with self.lock:
                    self.open.add(running)

    def _note(self, name: str | None, code: int) -> None:
        if name is not None:
            (self.failed.append if code else self.done.add)(name)

    def _give(self, left_s: float) -> str | None:
        for name in self.ready():
            if 1.2 * self.work[name]["expected_s"] <= left_s:
                self.open.discard(name)
                return name
        return None


def slot(host: str, port: int, end_s: float) -> None:
    """Ask for tasks, one after the other, until there has been none for a while."""
    idle_since = time.time()
    with socket.create_connection((host, port)) as link, link.makefile("rw") as talk:
        while time.time() - idle_since < IDLE_S:
            talk.write(f"free {end_s - time.time()}\n")
            talk.flush()
            if words := json.loads(talk.readline() or "[]"):
                code = subprocess.run(words, check=False).returncode
                talk.write(f"ended {code}\n")
                talk.flush()
                idle_since = time.time()
            else:
                time.sleep(0.5)


def main(role: str, *words: str) -> int:
    """Serve, or work."""
    if role == "serve":
        with Path("work.json").open() as file:
            work = json.load(file)
        cores, minutes, *options = words
        return Server(work, int(cores), int(minutes), options).serve()
    host, port, cores, end_s = words
    slots = [
        threading.Thread(target=slot, args=(host, int(port), float(end_s)))
        for _ in range(int(cores))
    ]
    for one in slots:
        one.start()
    for one in slots:
        one.join()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
