"""The store in Redis or Valkey: a copy of the rows in each process, and a log by which the copies follow the server."""
