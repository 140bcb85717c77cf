"""State to text, JSON, Markdown and HTML. No decision is made here, nothing is read or written.

A view is a function of values; what it says of a task comes from one place (`standing`), so that
status, report, list and JSON can't contradict each other. Whatever people get to see has passed
`escape`: titles, reasons, paths and output come from plans, agents and other people's records.
"""
