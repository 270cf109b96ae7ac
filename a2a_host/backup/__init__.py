"""`manage.py backup` and `manage.py restore`: a whole host in one file. See docs/operations.md."""
