"""An MCP server for tests: newline-delimited JSON-RPC on stdin and stdout, by the standard library alone."""
import json
import os
import sys

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOLS = [
    {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}},
    {"name": "where", "description": "Tells.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "draw", "description": "Draws.", "inputSchema": {"type": "object"}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
]


def call(name, arguments):
    if name == "add":
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    if name == "where":
        return {"content": [{"type": "text", "text": os.getcwd() + " " + os.environ.get("MARK", "")}]}
    if name == "draw":
        return {"content": [{"type": "text", "text": "a dot"}, {"type": "image", "data": PNG, "mimeType": "image/png"}]}
    return {"content": [{"type": "text", "text": "it failed"}], "isError": True}


print("a line that is no message", flush=True)
print("noise", file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        result = call(params["name"], params.get("arguments") or {})
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
