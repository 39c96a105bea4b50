"""Reading back what was recorded.

The room for verify, diff, replay, explain and impact, over any kind of document. It writes nothing into the record it
reads, and a replay gets its tools and its planner from the recording. It may import `runtime` and what stands below
that.
"""
