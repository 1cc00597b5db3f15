"""What tools and drivers say of where a model ran, one file a family: text in, a placement out."""
