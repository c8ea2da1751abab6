"""What schedules must answer, found the slow and obvious way; written from the contract, never from the engine.

Helpers only, no tests. `zones` knows wall clocks, `cron` reads expressions and walks minutes,
`interval` counts repetitions from the start, `rolls` moves instants off excluded dates, and
`strategies` and `moments` say what is worth asking.
"""
