"""Small models of MNN, as its converter wrote them."""
