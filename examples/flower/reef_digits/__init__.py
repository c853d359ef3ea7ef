"""Ten nodes learn to read handwritten digits; some of them are malicious. A Flower app with one of Reef's robust rules at the server."""
