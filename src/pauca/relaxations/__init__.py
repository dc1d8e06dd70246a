"""Lower bounds of the objective over all models of a size, and the trees that close the gap."""
