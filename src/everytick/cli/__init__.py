"""The command line: `everytick VERB`. Each verb is parse, one call to the application, render."""
