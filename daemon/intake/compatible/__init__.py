"""The routes that speak as OpenAI's do, so that what was made for those works here unchanged."""
