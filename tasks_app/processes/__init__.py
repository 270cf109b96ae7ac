"""The host of a process, and the Celery worker."""
