"""The language: text and Python functions into the recurrence IR, and the IR back into text."""
