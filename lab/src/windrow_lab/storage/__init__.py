"""Workloads that move data within limited space: which of five storage allocations to choose.

`allocations` has Bent's five and their models, `flows` plays a workload under one of them, `plan`
tries all and chooses, `environment_file` reads the cluster, and `page` writes about it.
"""
