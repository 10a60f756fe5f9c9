"""Campaigns: many trials as data, spread over processes and jobs, kept in chunks."""
