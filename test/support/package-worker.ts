/** What a project of its own has besides its worker: how it is compiled, and lines that must not compile. */

export const PROJECT_CONFIG: string = JSON.stringify({
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    // The package asks for no types of Node's.
    types: [],
    skipLibCheck: true,
  },
  files: ['worker.mts', 'wrong.mts', 'console.d.mts'],
});

/** The only thing of Node that the worker itself uses. */
export const CONSOLE_TYPES = 'declare global { var console: { log(text: string): void } }\nexport {};\n';

/** If the types were lost on the way to the package, nothing of this would be wrong. */
export const WRONG_LINES = `import { z } from 'zod';
import { createProducer, createQueueClient, defineMessage, type Handler } from 'onlyonce';

const contract = defineMessage({
  type: 'note.written',
  version: 1,
  schema: z.object({ id: z.string() }),
  keyOf: (note) => note.id,
});

// @ts-expect-error: what is sent must fit its contract
await createProducer({ client: createQueueClient(), queueUrl: '' }).send(contract, { id: 7 });

// @ts-expect-error: a key is a text
defineMessage({ type: 'a', version: 1, schema: z.object({ id: z.int() }), keyOf: (note) => note.id });

export const handler: Handler<{ id: string }> = {
  contract,
  // @ts-expect-error: an answer has one of three kinds
  handle({ payload }) {
    // @ts-expect-error: a payload has what its schema says, and no more
    void payload.text;
    return Promise.resolve({ kind: 'done' });
  },
};
`;
