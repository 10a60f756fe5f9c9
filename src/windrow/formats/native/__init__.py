"""Native workflow files: YAML with commands."""
