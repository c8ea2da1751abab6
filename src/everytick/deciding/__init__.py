"""What: the decisions. Pure functions from a snapshot and the store's `now` to a Plan or a Step."""
