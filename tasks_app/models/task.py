"""Tasks, their messages and their log, as the journal writes them."""

from __future__ import annotations

from django.db import models

from agents.models import Agent
from protocol.states import INTERRUPTED, RUNNING, TaskState


class Task(models.Model):
    """A task (§4.1.1) with its current status, and the claim of whoever runs it."""

    id = models.CharField(primary_key=True, max_length=36)
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="tasks", db_index=False, db_constraint=False
    )
    owner = models.CharField(max_length=120, help_text="The principal that sent the first message.")
    context_id = models.CharField(max_length=255)
    state = models.SmallIntegerField(choices=[(s.number, s.name) for s in TaskState])
    status = models.TextField(help_text="TaskStatus as JSON.")
    status_at = models.DateTimeField()
    metadata = models.TextField(null=True, help_text="JSON object, as the agent gave it.")
    created_at = models.DateTimeField()

    last_seq = models.IntegerField(default=0, help_text="seq of the newest event.")
    message_count = models.IntegerField(default=0)
    version = models.IntegerField(default=1, help_text="Raised by every write; writes name the version they build on.")

    attempt = models.IntegerField(default=1, help_text="The run that may write. Raising it fences off older runs.")
    worker = models.CharField(max_length=100, null=True, help_text="The process that runs the task, or did so last.")
    started_at = models.DateTimeField(null=True, help_text="When that process began to.")
    lease_until = models.DateTimeField(null=True)
    retries = models.SmallIntegerField(db_default=0, help_text="Runs of the newest turn that were lost and repeated.")
    deadline_at = models.DateTimeField(null=True, help_text="When the newest turn has to have ended.")
    waiting_attempt = models.IntegerField(
        null=True, help_text="The run that waits in its process for the next message, if its lease holds."
    )
    cancel_requested_at = models.DateTimeField(null=True)
    parent_id = models.CharField(max_length=36, null=True, help_text="The task whose agent delegated this one.")
    trace_id = models.CharField(max_length=64, null=True)
    dialect = models.CharField(max_length=20, help_text="Binding and version of the call that created it.")
    request = models.TextField(help_text="SendMessageRequest of the newest turn without its message, as JSON.")

    has_push_configs = models.BooleanField(db_default=False, help_text="Whether there ever was a push config.")
    push_due_at = models.DateTimeField(null=True, help_text="Since when events wait to be noted for push configs.")
    has_stored_parts = models.BooleanField(db_default=False, help_text="Whether parts of it are kept in files.")

    class Meta:
        permissions = [("answer_task", "Can answer waiting tasks and cancel tasks")]
        indexes = [
            models.Index(fields=["agent", "owner", "-status_at", "-id"], name="task_list"),
            models.Index(fields=["agent", "owner", "context_id", "-status_at", "-id"], name="task_list_context"),
            models.Index(fields=["agent", "owner", "state", "-status_at", "-id"], name="task_list_state"),
            models.Index(fields=["-status_at", "-id"], name="task_recent"),
            models.Index(
                fields=["lease_until"],
                name="task_unfinished",
                condition=models.Q(state__in=[TaskState.SUBMITTED.number, TaskState.WORKING.number]),
            ),
            models.Index(
                fields=["agent", "status_at"],
                name="task_waiting",
                condition=models.Q(state__in=[TaskState.INPUT_REQUIRED.number, TaskState.AUTH_REQUIRED.number]),
            ),
            models.Index(fields=["push_due_at"], name="task_push_due", condition=models.Q(push_due_at__isnull=False)),
            models.Index(fields=["parent_id"], name="task_parent", condition=models.Q(parent_id__isnull=False)),
            models.Index(
                fields=["parent_id"],
                name="task_open_child",
                condition=models.Q(parent_id__isnull=False, state__in=sorted(s.number for s in RUNNING | INTERRUPTED)),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class Message(models.Model):
    """One entry of a task's history (§4.1.4), in the order of `position` (from 1)."""

    pk = models.CompositePrimaryKey("task_id", "position")
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, db_constraint=False, related_name="messages", db_index=False
    )
    position = models.IntegerField()
    message_id = models.CharField(max_length=255)
    role = models.SmallIntegerField()
    body = models.TextField(help_text="Message as JSON.")
    search = models.TextField(help_text="Plain text of the text parts.")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.message_id


class Event(models.Model):
    """The log of a task: what streams, webhooks and resumed readers are sent, in the order of `seq` (from 1).

    Artifacts are their events: an append never rewrites what is there.
    """

    class Kind(models.IntegerChoices):
        STATUS = 1
        ARTIFACT = 2
        MESSAGE = 3

    pk = models.CompositePrimaryKey("task_id", "seq")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, db_constraint=False, related_name="events", db_index=False)
    seq = models.IntegerField()
    kind = models.SmallIntegerField(choices=Kind.choices)
    body = models.TextField(help_text="TaskStatus, Artifact or Message as JSON.")
    metadata = models.TextField(null=True, help_text="JSON object of the event.")
    artifact_id = models.CharField(max_length=255, null=True)
    append = models.BooleanField(default=False)
    last_chunk = models.BooleanField(default=False)
    attempt = models.IntegerField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.task_id}#{self.seq}"


class Receipt(models.Model):
    """A message that was accepted from a caller: the same one sent again finds its task here (§3.3.1)."""

    pk = models.CompositePrimaryKey("agent_id", "owner", "message_id")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    owner = models.CharField(max_length=120)
    message_id = models.CharField(max_length=255)
    task_id = models.CharField(max_length=36)
    digest = models.CharField(
        max_length=64, help_text="SHA-256 of the request, told apart from another one with the same id."
    )
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.message_id


class TaskCount(models.Model):
    """How many tasks an owner has in a state, kept by a trigger on Task in several shards so that writers do not meet.

    The sum over shards is exact; one row alone means nothing and may be negative.
    """

    pk = models.CompositePrimaryKey("agent_id", "owner", "state", "shard")
    agent_id = models.BigIntegerField()
    owner = models.CharField(max_length=120)
    state = models.SmallIntegerField()
    shard = models.SmallIntegerField()
    tasks = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.agent_id} {self.owner} {self.state}"
