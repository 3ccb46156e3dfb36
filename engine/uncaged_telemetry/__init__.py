"""Observer of threads that sends OpenTelemetry spans and metrics."""
