"""The paper's tables and figures, made again: recipes, records of runs, and the pages that show them."""
