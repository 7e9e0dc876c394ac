import page from './index.html'

/** The page, and the only thing that needs the API key: a token of an hour, for one agent and one end user, that may answer. */
const { THREADBOX_URL = 'http://127.0.0.1:7070', THREADBOX_API_KEY, AGENT = 'careful', PORT = '3000' } = process.env

const server = Bun.serve({
  port: Number(PORT),
  hostname: '127.0.0.1',
  development: false,
  routes: {
    '/': page,
    '/token': {
      async POST() {
        const answer = await fetch(`${THREADBOX_URL}/v1/tokens`, {
          method: 'POST',
          headers: { authorization: `Bearer ${THREADBOX_API_KEY}`, 'content-type': 'application/json' },
          // In an app: the id of the user who is signed in.
          body: JSON.stringify({ agent: AGENT, userId: 'somebody', expiresIn: '1h', approve: true }),
        })
        if (!answer.ok) return new Response(await answer.text(), { status: 502 })
        const { token } = (await answer.json()) as { token: string }
        return Response.json({ server: THREADBOX_URL, agent: AGENT, token })
      },
    },
  },
})
console.log(`open ${server.url}`)
