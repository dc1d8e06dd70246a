"""Runs of a search method: what is searched, the loop and its record, and several runs at a time."""
