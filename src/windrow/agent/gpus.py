"""Which GPUs a process sees, and how a task is shown its own. GPUs of a node go by their places among those, from 0.

Names are what the node's own environment calls them: the batch system may have given this job some of several.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SHOWN_BY = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
"""What programs for NVIDIA, AMD and Intel devices read."""
_SAID_BY = (*SHOWN_BY, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL")
_NONE = ("", "-1", "NoDevFiles")


def visible(environ: Mapping[str, str]) -> list[str] | None:
    """The names of the GPUs that are seen there; None where nothing says which."""
    said = next((environ[name] for name in _SAID_BY if name in environ), None)
    return None if said is None else _names(said)


def shown(environ: Mapping[str, str], gpus: Sequence[int]) -> dict[str, str]:
    """The variables by which a program sees these GPUs of a node with this environment, and no others."""
    found = visible(environ) or []
    each = {variable: _names(environ.get(variable, "")) or found for variable in SHOWN_BY}
    return {variable: ",".join(name_of(gpu, names) for gpu in gpus) for variable, names in each.items()}


def name_of(gpu: int, names: Sequence[str]) -> str:
    """What a GPU is called; its place, where it has no name."""
    return names[gpu] if gpu < len(names) else str(gpu)


def _names(said: str) -> list[str]:
    return [name for name in (word.strip() for word in said.split(",")) if name not in _NONE]
