"""What `deploy/` starts, started here: commands of the units and of the image, with their own environment."""
