"""How data leaves: tasks whose time is over, and everything of one principal or context. See docs/retention.md."""
