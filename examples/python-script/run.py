"""A sandbox, a file, a command and a chat over plain HTTP, without a package."""

import json
import os
import urllib.request

URL = os.environ.get("THREADBOX_URL", "http://127.0.0.1:7070")
KEY = os.environ["THREADBOX_API_KEY"]


def call(method, path, body=None):
    """The open answer; an error status raises urllib.error.HTTPError."""
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(f"{URL}/v1{path}", data, headers, method=method))


def ask(method, path, body=None):
    with call(method, path, body) as answer:
        return json.load(answer)


sandbox = ask("POST", "/sandboxes", {"agent": "echo"})["id"]
try:
    ask("POST", f"/sandboxes/{sandbox}/files", {"path": "/home/user/numbers.txt", "content": "3\n1\n2\n"})
    result = ask("POST", f"/sandboxes/{sandbox}/exec", {"command": 'sort numbers.txt | tr "\\n" " "'})
    print("sorted:", result["stdout"].strip())

    messages = [{"role": "user", "parts": [{"type": "text", "text": "Hello from Python"}]}]
    with call("POST", "/chat/echo", {"sandboxId": sandbox, "messages": messages}) as reply:
        for line in reply:
            if line.startswith(b"data: {"):
                chunk = json.loads(line[len("data: ") :])
                if chunk["type"] == "text-delta":
                    print(chunk["delta"], end="", flush=True)
    print()
finally:
    call("DELETE", f"/sandboxes/{sandbox}").close()
