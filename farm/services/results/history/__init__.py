"""History: points beside settling, and the questions over them."""
