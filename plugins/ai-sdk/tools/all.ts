import { bash } from './bash.ts'
import { edit } from './edit.ts'
import { glob } from './glob.ts'
import { grep } from './grep.ts'
import { list } from './list.ts'
import { multiEdit } from './multi-edit.ts'
import { read } from './read.ts'
import { todoWrite } from './todo-write.ts'
import type { Tool } from './tool.ts'
import { webFetch } from './web-fetch.ts'
import { write } from './write.ts'

/** The engine's own tools, in the order that models see. The order never changes, so that prompt caches match. */
export const ownTools: readonly Tool[] = [bash, read, write, edit, multiEdit, glob, grep, list, todoWrite, webFetch]
