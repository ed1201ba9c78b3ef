"""Search over the cards: an exact solver of hands with all cards seen, deals that fit a view, and an agent of both."""
