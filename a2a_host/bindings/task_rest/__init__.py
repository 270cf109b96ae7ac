"""The task REST dialect (docs/dialects.md), in the views of Django REST framework."""
