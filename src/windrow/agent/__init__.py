"""What runs inside an allocation: starts the tasks of one job on its nodes and writes down what
happened.

Rule 1: standard library only; it runs on compute nodes and must start fast.
Rule 2: it talks to the manager, and to agents of other jobs, through files in the run's folder and
nothing else.
Rule 3: whatever ends it, no task keeps running unnoticed.
"""
