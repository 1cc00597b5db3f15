"""Commands that start a farm, an agent or the demo."""
