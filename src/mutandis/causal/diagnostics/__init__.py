"""What the data say about a worldview, in plain sentences."""
