"""What variants are built from: networks that the farm knows, and those of the person who builds."""
