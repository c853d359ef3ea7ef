"""Ten nodes learn to read handwritten digits; some of them lie. A Flower app with a robust rule of Reef at the server."""
