"""Where definitions come from besides code: files, read whole or refused with every mistake named."""
