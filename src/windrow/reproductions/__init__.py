"""Experiments of papers done again, one folder for each. Nothing imports them but the command."""
