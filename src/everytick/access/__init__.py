"""Who may do what: people, passwords, tokens, sessions, and the audit of what they did."""
