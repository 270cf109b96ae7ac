"""The web UI for staff: one module per page, and what the pages share.

Pages read through the ORM. Everything that a caller or an agent wrote is hostile: it is escaped by the templates, or
sanitised in `rendering`, and a strict Content-Security-Policy stands behind both.
"""
