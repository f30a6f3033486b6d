"""The page that `bcn serve` shows, and the JSON interface under it."""
