"""What a task takes of a pool whose nodes have several cores and limited memory, as a number of
processors.

A pool counts one thing: processors. On nodes of a shape, a processor is one core with its equal
share of the memory and of whatever else a node has. A task takes as many as its cores, or as its
memory, its disk or its GPUs fill shares, whichever is most; a task on whole nodes takes all cores
of them. Batch systems charge for tasks in the same way.

Deliberately absent: where a task is put. Counts can say that a task fits which no single node has
room for; a pool that places tasks on nodes must look again (`windrow.model.packing`).
"""

import numpy as np

from windrow.errors import UserError
from windrow.model import NodeShape, Workflow
from windrow.model.nodes import lacking


def in_processors(workflow: Workflow, shape: NodeShape) -> Workflow:
    """The same tasks, with `cores` saying what each takes of a pool of such nodes; nothing else is
    asked for.

    UserError if a task does not fit on a node. Files and commands are left out: this is for
    deciding, not running.
    """
    too_large = np.flatnonzero(~workflow.fits(shape))
    if len(too_large):
        task = workflow.task(int(too_large[0]))
        _, needs, has = lacking(task.need, [shape])
        raise UserError(
            f"{workflow.name}: task {task.id} needs {needs}, and a node has {has}; take larger "
            "nodes"
        )
    return Workflow(
        workflow.name,
        ids=workflow.ids,
        kinds=workflow.kinds,
        runtime_s=workflow.runtime_s,
        cores=workflow.cores_held(shape),
        parents=workflow.parents,
    )
