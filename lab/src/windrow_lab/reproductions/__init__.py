"""Papers, run again: a folder for each, over one mechanism (`paper`). Nothing but `windrow
reproduce` knows them."""

PAPERS = {
    "bent": "batch-pipeline workloads in limited space: figures 2.3-2.7, 3.3-3.5, 4.9-4.28, A.3, "
    "A.4, tables 2.4, 2.5",
    "foresight": "the strategy foresight beside all others: where it was tuned, elsewhere, with "
    "noise, in parts",
    "glume": "grouping levels of a workflow by estimated makespan: figures 5.2, 5.3, 7.1-7.4, "
    "A.1, B.1-B.4, table 7.1",
    "faults": "ten methods on clusters that fail (Zhang's thesis, chapter 6): figures 6.4-6.16",
    "grid": "schedulers on grids of many clusters, EACP, selection before scheduling: figures "
    "3.2-3.10, 4.4-4.9",
    "hybrid": "rescheduling over batch queues (Zhang's thesis, chapter 5): figures 5.6-5.10, "
    "paired t-tests",
    "ilyushkin": "reservations for workflows that share a pool: figures 2, 4-8, tables I and II",
    "zhang": "hybrid against individual and giant submission on five clusters and more: figures "
    "10-15, paired t-tests",
}
"""What each folder redoes. A paper is found by its line here: `PAPER` in the folder's module
`page`."""
