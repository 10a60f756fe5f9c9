"""`windrow serve`: the runs of this folder in a browser, live."""

from __future__ import annotations

import argparse
import getpass
import os
from pathlib import Path

from windrow.cli import options
from windrow.cli.arguments import whole
from windrow.errors import UserError

_SOCKET = "serve.sock"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    words = "port on 127.0.0.1 (default: one that is free)"
    add("--port N", whole(1024, 65535), help=words)
    words = "listen at a socket in the folder of runs instead, which other users cannot reach"
    add("--socket", action="store_true", help=words)
    words = "let the page start workflows of this folder, and cancel, resume and retry"
    add("--control", action="store_true", help=words)


def run(args: argparse.Namespace) -> None:
    """Listen until Ctrl-C."""
    from windrow.app.runs import refuse_foreign_root, runs_root
    from windrow.cli.serving import Portal, new_token, opened
    from windrow.deletion import discard

    if args.socket and args.port is not None:
        raise UserError("--socket and --port exclude each other; leave one out")
    root = runs_root()
    if args.control or args.socket:
        refuse_foreign_root(root)
    token = new_token()
    path = root.parent / _SOCKET if args.socket else None
    if path is not None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    portal = Portal(root, Path.cwd(), token, control=args.control)
    server = opened(portal, args.port or 0, path)
    try:
        for line in told(path, server.server_port, token):
            print(line, flush=True)
        server.serve_forever(poll_interval=0.2)
    finally:
        server.server_close()
        if path is not None:
            discard(path)


def told(path: Path | None, port: int, token: str) -> list[str]:
    """The address, and how to get there from another machine."""
    host = os.uname().nodename
    there = f"{getpass.getuser()}@{host}"
    if path is not None:
        port = 8000
        lines = [f"listening at {path}, from your own machine:"]
        lines.append(f"  ssh -N -L {port}:{path} {there}")
    else:
        lines = [f"from another machine, first: ssh -N -L {port}:127.0.0.1:{port} {there}"]
    lines.append(f"open http://127.0.0.1:{port}/#token={token}")
    lines.append("Ctrl-C ends it; runs continue")
    return lines
