"""The OpenAPI document of what the host answers over HTTP, made of its views, structs and error table."""
