"""Speed of the host beside the official SDK's server: `make bench`."""
