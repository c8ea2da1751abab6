"""Texts that are part of the contract: people search logs for them and tests compare them."""

OVER = "will not run: its schedule ({schedule}) is over; give it a later time, or ask for a run with trigger"
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
SILENT_NODE = "its node {node} fell silent"
"""The error of an attempt that was lost."""

FALLING_BACK = "DB-driven scheduling failed, falling back to Option 1"
"""S1-020: the store is away, and jobs that say so are fired from memory."""

OVERLAP_SKIPPED = "Skipping overlapping run for Job {name}"
"""S0-060: an instant found its job busy."""

TAKEN_BY_ANOTHER = "Occurrence already claimed by another node"
"""S0-070: a plan came from a snapshot that no longer held."""

RECOVERY_FAILED = "recovery failed: {cause}"
"""S0-101: the first look at the store after a start went wrong."""

ALREADY_RUNNING = "scheduler already running"
"""S0-111: the application was started twice."""

CLAIM_FAILED = "failed to claim schedule"
"""S1-013: one job could not be planned; the others go on."""

CLAIMED = "claimed and enqueued schedule"
"""S1-014: a job's instants were decided."""

NOT_DISPATCHED = "Failed to dispatch run"
"""S4-043: what an occurrence calls could not be made ready; the others go on."""

STARTED = "Cron scheduler started"
"""S3-027: a node has begun to look at the clock, every `interval` at the latest."""

STOPPING = "Cron scheduler stopping"
"""S3-027: a node was told to stop."""

NO_NEXT_RUN = "Failed to calculate next run"
"""S3-027: a schedule raised."""

NOT_ENQUEUED = "Failed to enqueue scheduled job"
"""S3-027: what was decided about one job could not be written, or a beat could not hand a job to its queue."""

ENQUEUED = "Scheduled job enqueued"
"""S3-027: a beat has handed a job to its queue, and recorded it."""

NO_STATE = "Failed to get schedule state"
"""S3-027: a beat could not read what was recorded of a schedule, or of all of them."""

NO_LOCK = "Failed to acquire schedule lock"
"""S3-027: Redis refused the lock of a schedule; the next tick asks again."""

LOCK_FAILED = "failed to acquire lock: {cause}"
"""S3-018: the error that stands beside it."""

LOCKED = "Schedule already locked by another instance"
"""S3-017: another beat is at work on the schedule."""

NOT_RECORDED = "Failed to record scheduled jobs"
"""A beat handed jobs to its queue and could not say so in Redis; the next tick does both again, with the same ids."""

PLAN_REFUSED = "the store refuses its plan, and is asked again every minute: {reason}"
"""C-46: why a job is parked whose plan could not be written."""

UNREADABLE = "version {version} cannot be read: {reason}"
"""Why a job is parked whose definition a node does not understand."""

NOTHING_PLANNED = "nothing of the job is planned now: "
"""How an explanation says that a job is parked. The reason follows, to the end of the text."""

JOB_AHEAD = (
    "job '{name}' is decided through {watermark}, ahead of the store's clock: its schedule fires nothing until then; "
    "if a clock was wrong, `everytick db rewind {name}` sets it right"
)
"""C-45: a clock was ahead while the job was planned."""
