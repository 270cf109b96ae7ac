"""What the tables hold: read, and written where it is not the journal that writes."""
