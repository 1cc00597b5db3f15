"""TensorFlow Lite's and LiteRT's benchmark tools."""
