/** The template's code interpreter: `POST /execute`, an answer of JSON lines, and contexts that can be started anew. */
export function createInterpreter(token: string): void {
  const kernels = new Map<string, ReturnType<typeof startKernel>>()

  Bun.serve({
    hostname: '127.0.0.1',
    port: 49_999,
    idleTimeout: 0,
    async fetch(request) {
      const [, place, id = '', action] = new URL(request.url).pathname.split('/')
      if (place === 'health') return new Response('"OK"')
      if (request.method !== 'POST') return new Response('not found', { status: 404 })
      if (place === 'contexts' && id === '') {
        const { language, cwd }: any = await request.json()
        if (language !== 'python') return new Response('no such language', { status: 500 })
        const made = crypto.randomUUID()
        kernels.set(made, startKernel(cwd))
        return Response.json({ id: made, language, cwd })
      }
      if (place === 'contexts' && action === 'restart') {
        kernels.get(id)?.restart()
        return new Response(null, { status: 204 })
      }
      if (request.headers.get('x-access-token') !== token) return new Response('unauthorized', { status: 401 })
      if (place !== 'execute') return new Response('not found', { status: 404 })
      const body: any = await request.json()
      const kernel = kernels.get(body.context_id)
      if (!kernel) return new Response(`context ${body.context_id} not found`, { status: 404 })
      const events = kernel.execute(body.code)
      return new Response(
        new ReadableStream<Uint8Array>({
          async pull(controller) {
            const { value, done } = await events.next()
            if (done) controller.close()
            else controller.enqueue(Buffer.from(value))
          },
        }),
      )
    },
  })
}

function startKernel(cwd: string) {
  const start = () => Bun.spawn(['python3', '-c', KERNEL], { cwd, stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  let python = start()
  let lines = linesOf(python.stdout)
  let turn = Promise.resolve()

  async function* execute(code: string): AsyncGenerator<string> {
    const before = turn
    const { promise, resolve } = Promise.withResolvers<void>()
    turn = promise
    await before
    try {
      python.stdin.write(`${JSON.stringify(code)}\n`)
      await python.stdin.flush()
      for (let line = await lines.next(); !line.done && line.value !== 'null'; line = await lines.next()) {
        yield `${line.value}\n`
      }
    } finally {
      resolve()
    }
  }

  return {
    execute,
    restart() {
      python.kill('SIGKILL')
      python = start()
      lines = linesOf(python.stdout)
    },
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let held = ''
  for await (const chunk of stream) {
    const pieces = (held + decoder.decode(chunk, { stream: true })).split('\n')
    held = pieces.pop() ?? ''
    yield* pieces
  }
}

/** Runs cells as Jupyter does: the last expression is the result, shown by the forms that it has. */
const KERNEL = `
import ast, base64, contextlib, io, json, sys, traceback
real, space = sys.stdout, {}
def tell(kind, **fields):
  real.write(json.dumps({"type": kind, **fields}) + "\\n"); real.flush()
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
  real.write("null\\n"); real.flush()
`
