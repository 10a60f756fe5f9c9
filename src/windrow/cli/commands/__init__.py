"""The commands, one file each: `SUMMARY`, `add_arguments(parser)`, `run(args)`."""
