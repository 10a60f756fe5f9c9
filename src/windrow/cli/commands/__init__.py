"""The commands, one file each with `add_arguments(parser)` and `run(args)`, and a text of its
help."""
