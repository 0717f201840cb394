/**
 * ReceiveMessage as the front does it: short calls to the application in the place of its own long poll, and messages
 * given back when their caller has gone.
 */
import type { ServerResponse } from 'node:http';
import { systemClock } from '../clock.ts';
import { refusal, type FrontAnswer } from './front-protocol.ts';
import { LongPolls, type Received } from './long-polls.ts';

/** Unit: ms. */
const ASK_EVERY_MS = 20;
const MAX_WAIT_SECONDS = 20;

/** Hands one request to the application: headers with `x-amz-target`, and a JSON body. */
export type Call = (headers: Record<string, string>, body: Buffer | string) => Promise<FrontAnswer>;

/** One ReceiveMessage request. */
export interface ReceiveRequest {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly response: ServerResponse;
  readonly send: (response: ServerResponse, answer: FrontAnswer) => void;
}

type Json = Readonly<Record<string, unknown>>;

export class ReceiveOperation {
  readonly #call: Call;
  readonly #polls: LongPolls<FrontAnswer>;

  constructor(options: { call: Call; maxWaiting: number }) {
    this.#call = options.call;
    this.#polls = new LongPolls({ clock: systemClock, askEveryMs: ASK_EVERY_MS, maxWaiting: options.maxWaiting });
  }

  /** How many long polls wait now. */
  get waiting(): number {
    return this.#polls.waiting;
  }

  /** Ends all waiting; later receives do not wait. */
  close(): void {
    this.#polls.close();
  }

  /** Receives and answers. Messages that could not be handed over are visible again afterwards. */
  async run(request: ReceiveRequest): Promise<void> {
    const { response, headers } = request;
    const gone = goneSignal(response);
    const input = parseObject(request.body);
    if (input === undefined) {
      request.send(response, refusal(400, 'SerializationException', 'the request is not a JSON object'));
      return;
    }
    const waitSeconds = input['WaitTimeSeconds'] ?? (await this.#queueDefault(headers, input));
    if (!isWaitTime(waitSeconds)) {
      const rule = `must be a whole number from 0 to ${String(MAX_WAIT_SECONDS)}`;
      request.send(response, refusal(400, 'InvalidParameterValue', `WaitTimeSeconds ${rule}`));
      return;
    }
    const answer = await this.#receive({ headers, input, gone, waitSeconds });
    if (answer === undefined) return;
    if (gone.aborted) {
      await this.#giveBack(headers, input, answer);
      return;
    }
    // From here on the answer may still fail to leave this machine; `gone` tells, and never after it has left.
    gone.addEventListener('abort', () => void this.#giveBack(headers, input, answer), { once: true });
    request.send(response, answer);
  }

  /** @returns undefined when the caller has gone. */
  async #receive(options: {
    headers: Record<string, string>;
    input: Json;
    gone: AbortSignal;
    waitSeconds: number;
  }): Promise<FrontAnswer | undefined> {
    const { headers, input, gone } = options;
    const body = JSON.stringify({ ...input, WaitTimeSeconds: 0 });
    const receive = async (): Promise<Received<FrontAnswer>> => {
      const answer = await this.#call(headers, body);
      return { answer, empty: answer.statusCode === 200 && receiptHandles(answer).length === 0 };
    };
    if (options.waitSeconds === 0) return gone.aborted ? undefined : (await receive()).answer;
    const outcome = await this.#polls.wait({
      queue: queueName(input),
      waitMs: options.waitSeconds * 1_000,
      gone,
      receive,
      giveBack: (answer) => this.#giveBack(headers, input, answer),
    });
    switch (outcome.kind) {
      case 'answer':
        return outcome.answer;
      case 'empty':
        return { statusCode: 200, headers: { 'content-type': 'application/x-amz-json-1.0' }, body: Buffer.from('{}') };
      case 'full':
        return refusal(503, 'ServiceUnavailable', 'too many long polls wait at this local server');
      case 'gone':
        return undefined;
    }
  }

  /** The wait time the queue was created with, for a request that names none. */
  async #queueDefault(headers: Record<string, string>, input: Json): Promise<number> {
    const name = 'ReceiveMessageWaitTimeSeconds';
    const body = JSON.stringify({ QueueUrl: input['QueueUrl'], AttributeNames: [name] });
    const answer = parseObject(
      (await this.#call({ ...headers, 'x-amz-target': 'AmazonSQS.GetQueueAttributes' }, body)).body,
    );
    const attributes = answer?.['Attributes'];
    // An error (no such queue) comes up again, in the right words, when the receive itself is made.
    return isObject(attributes) ? Number(attributes[name] ?? 0) : 0;
  }

  async #giveBack(headers: Record<string, string>, input: Json, answer: FrontAnswer): Promise<void> {
    for (const handle of receiptHandles(answer)) {
      const body = { QueueUrl: input['QueueUrl'], ReceiptHandle: handle, VisibilityTimeout: 0 };
      const target = { ...headers, 'x-amz-target': 'AmazonSQS.ChangeMessageVisibility' };
      // It fails when the message is no longer in flight or the application is closed: then nothing is left to give back.
      await this.#call(target, JSON.stringify(body)).catch(() => undefined);
    }
  }
}

/** Aborts when the connection ends before the whole answer was handed to the operating system. */
function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

function isWaitTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_WAIT_SECONDS;
}

/** The last part of the queue's URL: the application knows its queues by that, whatever host the URL has. */
function queueName(input: Json): string {
  const url = input['QueueUrl'];
  return typeof url === 'string' ? url.slice(url.lastIndexOf('/') + 1) : '';
}

function receiptHandles(answer: FrontAnswer): string[] {
  if (answer.statusCode !== 200) return [];
  const messages = parseObject(answer.body)?.['Messages'];
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message: unknown) => {
    const handle = isObject(message) ? message['ReceiptHandle'] : undefined;
    return typeof handle === 'string' ? [handle] : [];
  });
}

function parseObject(body: Buffer): Json | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
