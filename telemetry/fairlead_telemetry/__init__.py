"""What a cluster tells the outside: messages to an MQTT broker and metrics for Prometheus. Control never depends on it."""
