"""A model on loopback that plays a script: each turn of a conversation is one tool call, the last one a text.

It speaks what the agents speak: Responses (Codex), Chat Completions (opencode) and Gemini. It finds our tools among
those that the agent offers, so a script names `input` and `output` only. A request without our tools is one of the
agent's own, such as a title for the session, and gets a text.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

__all__ = ["Call", "LoopbackModel", "serve_model"]

MODEL = "model-x"
Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A turn of the model: a call of one of our tools. `before` changes the world first."""

    tool: str
    arguments: Body
    before: Callable[[], object] | None = None


@dataclass
class LoopbackModel:
    """The script, and what the agent sent: the results that the model saw, and every request."""

    script: tuple[Call, ...]
    results: list[str] = field(default_factory=list)
    requests: list[Body] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    _played: int = 0
    _lock: Lock = field(default_factory=Lock)

    def turn(self, results: list[str]) -> Call | None:
        """Return the call after these results; None at the end of the script."""
        with self._lock:
            self.results = max(self.results, results, key=len)
            if len(results) >= len(self.script):
                return None
            call = self.script[len(results)]
            if call.before is not None and len(results) >= self._played:
                call.before()
            self._played = len(results) + 1
            return call

    def reply(self, path: str, body: Body) -> tuple[str, bytes]:
        """Answer a request: the content type and the bytes."""
        self.requests.append(body)
        if path.endswith("/responses"):
            return self._answer_responses(body)
        if path.endswith("/chat/completions"):
            return self._answer_chat(body)
        if "eneratecontent" in path.lower():
            return self._answer_gemini(body, is_stream="stream" in path)
        return _document({"totalTokens": 42})

    def _answer_responses(self, body: Body) -> tuple[str, bytes]:
        offered = {
            inner["name"]: tool["name"]
            for tool in body.get("tools", ())
            if tool.get("type") == "namespace" and "context_pack" in tool["name"]
            for inner in tool["tools"]
        }
        outputs = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
        call = self.turn([_text(output) for output in outputs]) if offered else None
        if call is None:
            content = [{"type": "output_text", "text": "Done.", "annotations": []}]
            item: Body = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        else:
            self.tools = sorted(offered)
            item = {
                "id": f"fc_{len(outputs)}",
                "type": "function_call",
                "call_id": f"call_{len(outputs)}",
                "name": call.tool,
                "namespace": offered[call.tool],
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": MODEL}
        response |= {"output": [item], "usage": usage}
        return _events(
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        )

    def _answer_chat(self, body: Body) -> tuple[str, bytes]:
        offered = _own_tools(tool["function"]["name"] for tool in body.get("tools", ()))
        results = [_text(message["content"]) for message in body["messages"] if message["role"] == "tool"]
        call = self.turn(results) if offered else None
        if call is None:
            delta: Body = {"role": "assistant", "content": "Done."}
        else:
            self.tools = sorted(offered)
            function = {"name": offered[call.tool], "arguments": json.dumps(call.arguments)}
            part = {"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}
            delta = {"role": "assistant", "tool_calls": [part]}
        reason = "stop" if call is None else "tool_calls"
        head = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": delta, "finish_reason": reason}
            return _document({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        first = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
        kind, data = _events(first, last)
        return kind, data + b"data: [DONE]\n\n"

    def _answer_gemini(self, body: Body, *, is_stream: bool) -> tuple[str, bytes]:
        declarations = [each for tool in body.get("tools", ()) for each in tool.get("functionDeclarations", ())]
        offered = _own_tools(declaration["name"] for declaration in declarations)
        parts = [part for content in body.get("contents", ()) for part in content.get("parts", ())]
        results = [_text(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
        call = self.turn(results) if offered else None
        if call is None:
            is_json = body.get("generationConfig", {}).get("responseMimeType") == "application/json"
            answer: Body = {"text": json.dumps({"next_speaker": "user", "reasoning": "done"}) if is_json else "Done."}
        else:
            self.tools = sorted(offered)
            answer = {"functionCall": {"name": offered[call.tool], "args": call.arguments}}
        candidate = {"content": {"role": "model", "parts": [answer]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        response = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}
        return _events(response) if is_stream else _document(response)


def _own_tools(names: Iterator[str]) -> dict[str, str]:
    """Map `input` and `output` to the names under which an agent offers them."""
    own = [name for name in names if "context" in name and "pack" in name]
    return {tool: name for name in own for tool in ("input", "output") if name.endswith(tool)}


def _text(result: object) -> str:
    """Return what a model reads of a result."""
    if isinstance(result, list):
        return "".join(part.get("text", "") for part in result if isinstance(part, dict))
    if isinstance(result, dict):
        return str(result.get("output", result.get("error", json.dumps(result))))
    return str(result)


def _document(value: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def _events(*events: Body) -> tuple[str, bytes]:
    data = "".join(
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events
    )
    return "text/event-stream", data.encode()


@contextmanager
def serve_model(model: LoopbackModel) -> Iterator[str]:
    """Serve a model on a free port, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
            pass

        def do_GET(self) -> None:
            self._send(*_document({"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            self._send(*model.reply(self.path.split("?")[0], body))

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
