"""The service: HTTP API, dashboard, health. It calls `app` and adds no rules of its own."""
