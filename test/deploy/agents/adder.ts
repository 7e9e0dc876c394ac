import { agent, Sandbox, tool } from '@21st-sdk/agent'
import { z } from 'zod'

/** The agent that is deployed in tests, as its author writes it. */
export default agent({
  runtime: 'claude-code',
  model: 'claude-sonnet-4-6',
  systemPrompt: 'You add numbers.',
  maxTurns: 20,
  sandbox: Sandbox({
    setup: ['echo "set up with $GREETING"', 'echo done > /home/user/setup.txt'],
    files: { '/home/user/note.txt': 'from the agent' },
    cwd: '/home/user/work',
  }),
  onFinish: async () => {},
  tools: {
    add: tool({
      description: 'Adds two numbers',
      inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
      execute: async ({ a, b }) => {
        console.log(`adding in ${process.env.GREETING}`)
        process.stdout.write('not a message\n')
        return { content: [{ type: 'text', text: `${a + b} ${process.env.GREETING ?? ''} ${process.cwd()}` }] }
      },
    }),
    fail: tool({
      description: 'Throws',
      inputSchema: z.object({}),
      execute: async () => {
        throw new Error('it broke')
      },
    }),
    hang: tool({
      description: 'Never ends, and lets nothing else run',
      inputSchema: z.object({}),
      execute: async () => {
        for (;;);
      },
    }),
    wait: tool({
      description: 'Never ends',
      inputSchema: z.object({}),
      execute: () => new Promise(() => {}),
    }),
    quit: tool({
      description: 'Ends its process',
      inputSchema: z.object({}),
      execute: async () => process.exit(3),
    }),
  },
})
