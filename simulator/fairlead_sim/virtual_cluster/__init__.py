"""One cluster on virtual time: the cores of a live master and its agents, over a simulated network, disks and processes."""
