"""JSONLogic: expressions, their strict form, conditions, and a solver for them."""
