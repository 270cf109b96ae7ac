"""`make chaos`: a whole host under load while its parts are killed, and an auditor who compares what everybody knew."""
