"""The one door for tool calls.

The room for the broker and its wrappers: schema, permission, approval, idempotency, redaction and recording, each a
wrapper of the same port. It does not speak a tool's protocol, which an adapter does, and it makes no plan. It may
import `authoring`, `trust`, `policy`, `ports`, `model` and `errors`, and none of the rooms beside it. Nothing lives
here yet.
"""
