import { z } from 'zod'
import { defineTool } from './tool.ts'

export const todoWrite = defineTool({
  name: 'TodoWrite',
  description:
    'Keeps the list of what is to do in a task of three or more steps, and shows it to the user. Give the whole list each time. One item is in_progress; mark it completed as soon as it is.',
  input: z.object({
    todos: z.array(
      z.object({
        content: z.string().min(1).describe('What is to do: "Run the tests"'),
        status: z.enum(['pending', 'in_progress', 'completed']),
        activeForm: z.string().optional().describe('The same while it is done: "Running the tests"'),
      }),
    ),
  }),
  isReadOnly: true,
  // The list is the call's input, which the thread stores and the model sees in its history.
  run: async () =>
    'Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable',
})
