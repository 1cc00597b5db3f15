"""What agents say to the farm, and what the farm answers."""
