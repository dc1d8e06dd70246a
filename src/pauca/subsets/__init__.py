"""A model kept fitted while units come and go: what changes in a run."""
