/**
 * A code interpreter as E2B's own, as far as its clients see it: contexts that keep their variables and can be started anew, cells
 * whose answers are lines of JSON. It stands in for Jupyter, which takes minutes to install; scripts/e2b-matrix tries that.
 */
const SERVER = String.raw`
import ast, base64, contextlib, io, json, subprocess, sys, threading, traceback, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def kernel():
  real, space = sys.stdout, {}
  def tell(kind, **fields):
    real.write(json.dumps({"type": kind, **fields}) + "\n"); real.flush()
  class Out(io.TextIOBase):
    def __init__(self, name): self.name_ = name
    def write(self, text):
      if text: tell(self.name_, text=text, timestamp="2026-01-01T00:00:00Z")
      return len(text)
  def result(value):
    forms = {"text": repr(value)}
    for name, key in (("_repr_html_", "html"), ("_repr_png_", "png")):
      if hasattr(value, name):
        form = getattr(value, name)()
        forms[key] = base64.b64encode(form).decode() if isinstance(form, bytes) else form
    tell("result", is_main_result=True, **forms)
  for line in sys.stdin:
    try:
      with contextlib.redirect_stdout(Out("stdout")), contextlib.redirect_stderr(Out("stderr")):
        tree = ast.parse(json.loads(line))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), space)
        if last:
          value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
          if value is not None: result(value)
    except BaseException as error:
      tell("error", name=type(error).__name__, value=str(error), traceback=traceback.format_exc())
    tell("number_of_executions", execution_count=1)
    real.write("null\n"); real.flush()

class Kernel:
  def __init__(self, cwd):
    self.cwd, self.turn = cwd, threading.Lock()
    self.start()
  def start(self):
    self.process = subprocess.Popen([sys.executable, __file__, "kernel"], cwd=self.cwd, stdin=-1, stdout=-1, text=True)
  def restart(self):
    self.process.kill()
    self.start()
  def execute(self, code):
    with self.turn:
      process = self.process
      process.stdin.write(json.dumps(code) + "\n"); process.stdin.flush()
      for line in process.stdout:
        if line == "null\n": return
        yield line.encode()

kernels = {}

class Handler(BaseHTTPRequestHandler):
  def log_message(self, *_): pass
  def answer(self, status, value):
    body = json.dumps(value).encode()
    self.send_response(status); self.send_header("content-length", str(len(body))); self.end_headers()
    self.wfile.write(body)
  def do_GET(self):
    self.answer(200 if self.path == "/health" else 404, "OK")
  def do_POST(self):
    body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "{}")
    _, place, *rest = self.path.split("/")
    if place == "contexts" and not rest:
      made, cwd = str(uuid.uuid4()), body.get("cwd") or "/home/user"
      kernels[made] = Kernel(cwd)
      return self.answer(200, {"id": made, "language": "python", "cwd": cwd})
    if place == "contexts" and rest[1:] == ["restart"]:
      kernels[rest[0]].restart()
      return self.answer(200, None)
    found = kernels.get(body.get("context_id"))
    if place != "execute" or not found: return self.answer(404, "not found")
    self.send_response(200); self.end_headers()
    for line in found.execute(body["code"]):
      self.wfile.write(line); self.wfile.flush()

if sys.argv[1:] == ["kernel"]: kernel()
else: ThreadingHTTPServer(("127.0.0.1", 49999), Handler).serve_forever()
`

const START = '#!/bin/sh\nexec python3 /opt/code-interpreter/server.py\n'

/** The files and setup of agents whose sandboxes have the interpreter. */
export const codeInterpreter = {
  files: { '/opt/code-interpreter/server.py': SERVER, '/opt/code-interpreter/start': START },
  setup: ['chmod 755 /opt/code-interpreter/start'],
}
