"""The panel: where people hand in, read, correct and unblock their records, in a browser.

It asks what the doors ask and does what they do, by their own functions; here is only how it looks.
"""

from daemon.panel.app import attach

__all__ = ["attach"]
