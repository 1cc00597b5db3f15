"""Files of other tools: `farm export`."""
