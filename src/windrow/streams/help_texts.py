"""What users may write, in words; the help of commands and the pages show it."""

POLICY_FORMS: dict[str, str] = {
    "bf": "start whatever is eligible, in the order of arrival",
    "due:PATIENCE": "as bf, but earliest deadline first: arrival + PATIENCE x makespan alone "
    "(due: PATIENCE 1)",
    "fes:DEPTH": "hold processors for the widest of the next DEPTH eligible sets",
    "slop:F": "hold the fraction F of the level of parallelism",
    "sr": "hold the whole level of parallelism",
}

POOL_POLICY_FORMS: dict[str, str] = {
    **POLICY_FORMS,
    "sr-exact": "as sr, computed exactly: no workflow is delayed by later arrivals",
}
"""The policies of a real pool; simulated streams do not know the last one."""

SELECTION_MEANINGS: dict[str, str] = {
    "random": "any of a workflow's eligible tasks, as likely as any other",
    "descendants": "the one with most descendants first",
    "longest-path": "the one with most hops to an exit first",
}
