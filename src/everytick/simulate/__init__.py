"""The coming days, decided by the real `plan` and carried out on virtual time.

No task is run and no store is written: of what a job does only its length counts. What becomes
of every instant is what the planner would decide, seen with the pauses, requests and runs
that a store holds now.
"""
