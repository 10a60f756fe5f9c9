"""The commands of the studies, one file each. `windrow` finds them by their entry points."""
