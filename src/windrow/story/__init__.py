"""What happened in a run: the events of its journal, and what they tell.

`events` are written by what runs (`windrow.manager`), and by nothing else; `translate` makes them
of what agents and queues say. `story` tells what became of each job and task, `figures` measures
it, and the others answer one question each. Nothing here decides what happens next, so what
shows a run needs this room and not the one that runs it.
"""
