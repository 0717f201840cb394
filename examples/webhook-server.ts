import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { z } from 'zod';
import { defineMessage, plus, type Handler, type MessageContract, type Producer } from '../src/index.ts';

export interface PointsEvent {
  readonly id: string;
  readonly memberId: string;
  readonly points: number;
}

const schema = z.object({ id: z.string().min(1), memberId: z.string().min(1), points: z.int().positive() });

export const POINTS_EVENT: MessageContract<PointsEvent> = defineMessage({
  type: 'webhook.points',
  version: 1,
  schema,
  // What the sender calls the event, however often it sends it.
  keyOf: (event) => event.id,
});

export const addPoints: Handler<PointsEvent> = {
  contract: POINTS_EVENT,
  // Its effects are DynamoDB writes only: one request commits them together with the record of the event.
  commit: 'direct',
  handle({ payload: { memberId, points } }, { transaction }) {
    const key = { PK: `MEMBER#${memberId}`, SK: 'POINTS' };
    transaction.add({ kind: 'update', label: 'points', key, change: { set: { balance: plus(points, 0) } } });
    return Promise.resolve({ kind: 'completed', response: { points } });
  },
};

const MAX_BODY_BYTES = 65_536;
const SEND_LIMIT_MS = 5_000;

/** Takes `POST /webhook` and puts the event on the queue. It remembers nothing: that is the worker's part. */
export function createWebhookServer(producer: Producer, secret: string): Server {
  return createServer({ requestTimeout: 10_000 }, (request, response) => {
    const answer = (status: number): void => {
      // The rest of a body that is not wanted is not read either.
      response.writeHead(status, request.complete ? {} : { connection: 'close' }).end();
    };
    take(request, producer, secret).then(answer, () => {
      answer(500);
    });
  });
}

async function take(request: IncomingMessage, producer: Producer, secret: string): Promise<number> {
  if (request.url !== '/webhook') return 404;
  if (request.method !== 'POST') return 405;
  const body = await readBody(request);
  if (body === undefined) return 413;
  if (!isSigned(body, request.headers['x-signature'], secret)) return 401;
  const event = parse(body);
  if (event === undefined) return 400;
  const { kind } = await producer.send(POINTS_EVENT, event, { signal: AbortSignal.timeout(SEND_LIMIT_MS) });
  // Accepted means that the queue has it. Otherwise the sender tries again, which is harmless.
  if (kind === 'sent') return 202;
  return kind === 'invalid' ? 400 : 503;
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** No time is signed: a request that somebody recorded and sends again is one more duplicate. */
function isSigned(body: Buffer, signature: unknown, secret: string): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(String(signature));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function parse(body: Buffer): PointsEvent | undefined {
  try {
    return schema.safeParse(JSON.parse(body.toString())).data;
  } catch {
    return undefined;
  }
}
