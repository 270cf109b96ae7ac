"""A task's log played back: what a reader who is at each seq should see."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.chaos.books import Item, StoredTask


@dataclass(frozen=True, slots=True)
class View:
    """A task at one seq, put together as a client does (§4.2.2)."""

    state: str = "SUBMITTED"
    timestamp: str = ""
    artifacts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """Of all artifacts."""
        return tuple(text for texts in self.artifacts.values() for text in texts)

    def after(self, item: Item) -> View:
        """What the next event makes of it."""
        if item.kind == "artifact":
            before = self.artifacts.get(item.artifact, ()) if item.append else ()
            return replace(self, artifacts={**self.artifacts, item.artifact: before + item.texts})
        return replace(self, state=item.state, timestamp=item.timestamp)

    def shows(self, item: Item) -> bool:
        """Whether a snapshot (or the Message that answered) says the same. When it was SUBMITTED is in no event."""
        same_time = not self.timestamp or self.timestamp == item.timestamp
        return item.state == self.state and same_time and item.texts == self.texts


def views(task: StoredTask) -> list[View]:
    """The task at seq 0, 1, … up to its last event."""
    found = [View()]
    for _, item in task.log:
        found.append(found[-1].after(item))
    return found
