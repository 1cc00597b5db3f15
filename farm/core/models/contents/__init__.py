"""What model files contain, counted on the file itself: operators and weights. Nothing in them is run."""
