"""0.3 in the JSON of its protobuf definition, as the SDKs send it over HTTP+JSON."""
