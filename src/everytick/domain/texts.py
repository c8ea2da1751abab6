"""Texts that are part of the contract: people search logs for them and tests compare them."""

JOB_ALREADY_REGISTERED = "job already registered: {id}"
"""S0-112: one name stands twice in one application."""

TASK_TIMEOUT = "task execution timeout"
"""S0-066: the error of an attempt that ran longer than its task_timeout."""

EXECUTION_TIMEOUT = "Execution exceeded timeout"
"""The error of an occurrence that its execution_timeout ended."""

FAIL_FAST = "task {name} failed, aborting due to fail-fast"
"""S0-036: the error of an occurrence that one failed task ended."""

SHUTDOWN = "shutdown"
"""The error of an attempt that was canceled because its node stops."""

SILENT = "its node fell silent"
"""The error of an attempt that was lost."""
