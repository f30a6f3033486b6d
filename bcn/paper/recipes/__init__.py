"""What we train for each row of a table: a module for each table. `bcn.paper.tables` finds rows by name."""
