"""Push notifications (§4.3): `config` is what is stored of a webhook, `configs` reads and changes it, `delivery` posts.

The log of a task is the outbox. The statement that stores an event of a task with push configs also notes
`push_due_at` in its row; a worker spreads that note to the configs and posts what each has not had yet.
"""
