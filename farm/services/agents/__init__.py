"""Reports of agents to the farm, and the farm's answers."""
