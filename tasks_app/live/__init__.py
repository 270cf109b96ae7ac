"""What happens, as it happens: events for streams, and what other processes announce."""
