"""Jobs and occurrences in PostgreSQL: plain SQL, shared by any number of nodes."""
