"""Files on disks of nodes: what must leave them, views of tasks on them, and volumes that nodes
share.

`local_files` says what must leave a node and when; `node_data` keeps the files of one node, and
lets a `carrier` move them; `view` and `mounts` show a task its files. Nodes share volumes by
`sharing`: as `members` of a cooperative cache (`peers`), which serve each other (`serving`) by
signed requests (`signing`), from their `homes` or nodes of other jobs (`neighbours`). `blocks`,
`cache` and `replicas` are pure.
"""
