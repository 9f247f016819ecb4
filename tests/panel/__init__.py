"""The panel in the system's own Chromium, before the real service: what people see and do."""
