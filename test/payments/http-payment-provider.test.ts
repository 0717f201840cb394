import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { ConfigurationError, isOnlyonceError } from '../../src/errors.ts';
import {
  createHttpPaymentProvider,
  resolveHttpPaymentProviderOptions,
  type HttpPaymentProviderOptions,
} from '../../src/payments/http-payment-provider.ts';
import { PaymentError, type ChargeRequest } from '../../src/payments/payment-provider.ts';
import { ManualClock } from './manual-clock.ts';
import { sampleBody } from './sample-charge.ts';

const charge: ChargeRequest = { idempotencyKey: 'charges/req-1/charge', ...sampleBody };
const charged = { kind: 'charged', providerChargeId: 'ch_1' };

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
});

async function serve(listener: RequestListener, options: Partial<HttpPaymentProviderOptions> = {}) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return createHttpPaymentProvider({ baseUrl: `http://127.0.0.1:${String(port)}`, ...options });
}

function answering(status: number, body: unknown): RequestListener {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
}

/** A server that takes the request and stays silent; `reached` resolves when the request is there. */
function silent(): { listener: RequestListener; reached: Promise<IncomingMessage> } {
  let listener: RequestListener = () => undefined;
  const reached = new Promise<IncomingMessage>((resolve) => {
    listener = (request) => {
      resolve(request);
    };
  });
  return { listener, reached };
}

async function faultOf(pending: Promise<unknown>): Promise<PaymentError> {
  const error = await pending.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof PaymentError) return error;
  throw new Error('expected a PaymentError', { cause: error });
}

test('sends the key and the caller as headers and the rest as the body', async () => {
  const seen: { request?: IncomingMessage; body?: unknown } = {};
  const provider = await serve(
    (request, response) => {
      seen.request = request;
      void text(request).then((body) => {
        seen.body = JSON.parse(body);
        response.writeHead(201).end(JSON.stringify(charged));
      });
    },
    { caller: 'worker-7' },
  );

  const result = await provider.charge(charge);

  expect(result).toEqual(charged);
  expect(seen.request).toMatchObject({ method: 'POST', url: '/v1/charges' });
  expect(seen.request?.headers).toMatchObject({
    'idempotency-key': 'charges/req-1/charge',
    'x-caller': 'worker-7',
    'content-type': 'application/json',
  });
  expect(seen.body).toEqual(sampleBody);
});

test('gives a decline as a value', async () => {
  const provider = await serve(answering(402, { kind: 'declined', reason: 'no money', code: 'extra field' }));

  expect(await provider.charge(charge)).toEqual({ kind: 'declined', reason: 'no money' });
});

test.each([
  [500, 'internal_error', 'server-error', true],
  [503, 'memory_full', 'server-error', true],
  [429, 'slow_down', 'try-later', true],
  [409, 'idempotency_key_in_use', 'key-in-use', true],
  [409, 'idempotency_key_reused', 'key-reused', false],
  [422, 'invalid_request', 'refused', false],
  [302, 'moved', 'refused', false],
])('sorts status %i with code %s as %s', async (status, code, ...sorted) => {
  const [reason, retryable] = sorted;
  const provider = await serve(answering(status, { error: { code, message: 'why' } }));

  const error = await faultOf(provider.charge(charge));

  expect(error).toMatchObject({ code: 'PAYMENT', reason, retryable });
  expect(isOnlyonceError(error)).toBe(true);
  expect(error.message).toContain(`${String(status)} ${code}: why`);
});

test('does not follow a redirect', async () => {
  const urls: (string | undefined)[] = [];
  const provider = await serve((request, response) => {
    urls.push(request.url);
    response.writeHead(307, { location: '/elsewhere' }).end();
  });

  expect((await faultOf(provider.charge(charge))).reason).toBe('refused');
  expect(urls).toEqual(['/v1/charges']);
});

test('sorts a 5xx without a readable body as a fault of the server', async () => {
  const provider = await serve((_, response) => response.writeHead(502).end('<html>'));

  expect((await faultOf(provider.charge(charge))).reason).toBe('server-error');
});

test.each([
  ['no JSON', 201, 'charged!'],
  ['another shape', 201, { kind: 'charged' }],
  ['an unknown kind', 200, { kind: 'maybe' }],
  ['a charge under status 402', 402, charged],
  ['more than 64 KiB', 201, { ...charged, padding: 'x'.repeat(70_000) }],
])('does not believe an answer with %s', async (_, status, body) => {
  const provider = await serve(answering(status, body));

  expect(await faultOf(provider.charge(charge))).toMatchObject({ reason: 'bad-answer', retryable: true });
});

test('reports a cut connection as retryable', async () => {
  const provider = await serve((request) => request.socket.destroy());

  expect(await faultOf(provider.charge(charge))).toMatchObject({ reason: 'connection', retryable: true });
});

test('reports an answer that is cut in its middle as a connection fault', async () => {
  const provider = await serve((request, response) => {
    response.writeHead(201, { 'content-length': '1000' });
    response.write('{"kind":', () => request.socket.destroy());
  });

  expect((await faultOf(provider.charge(charge))).reason).toBe('connection');
});

test('gives up on a silent provider when the time-out is over', async () => {
  const clock = new ManualClock();
  const { listener, reached } = silent();
  const provider = await serve(listener, { clock });
  const fault = faultOf(provider.charge(charge));
  await reached;

  clock.advance(9_999);
  expect(clock.pendingTimers).toBe(1);
  clock.advance(1);

  expect(await fault).toMatchObject({ reason: 'timeout', retryable: true });
});

test('gives up on a provider that starts an answer and never ends it', async () => {
  const clock = new ManualClock();
  let started = (): void => undefined;
  const reached = new Promise<void>((resolve) => {
    started = resolve;
  });
  const provider = await serve(
    (_, response) => {
      response.writeHead(201);
      response.write('{', () => {
        started();
      });
    },
    { clock },
  );
  const fault = faultOf(provider.charge(charge));
  await reached;

  clock.advance(10_000);

  expect((await fault).reason).toBe('timeout');
});

test('really fires its time-out on the system clock', async () => {
  const provider = await serve(() => undefined, { timeoutMs: 20 });

  expect((await faultOf(provider.charge(charge))).reason).toBe('timeout');
});

test('rejects with the reason of the caller when the caller aborts, and closes the connection', async () => {
  const clock = new ManualClock();
  const { listener, reached } = silent();
  const provider = await serve(listener, { clock });
  const controller = new AbortController();
  const lost = new Error('lease lost');
  const pending = provider.charge(charge, { signal: controller.signal });
  const request = await reached;
  const closed = once(request.socket, 'close');

  controller.abort(lost);

  await expect(pending).rejects.toBe(lost);
  await closed;
  expect(clock.pendingTimers).toBe(0);
});

test('sends nothing when the caller has aborted before', async () => {
  let requests = 0;
  const provider = await serve(() => (requests += 1));
  const lost = new Error('lease lost');

  await expect(provider.charge(charge, { signal: AbortSignal.abort(lost) })).rejects.toBe(lost);
  expect(requests).toBe(0);
});

test.each([
  ['an amount of 0', { amountMinor: 0 }],
  ['half a cent', { amountMinor: 0.5 }],
  ['a currency in small letters', { currency: 'eur' }],
  ['a key that HTTP would change', { idempotencyKey: ' k' }],
  ['a key with a line end', { idempotencyKey: 'k\r\nx: y' }],
  ['a key of 256 characters', { idempotencyKey: 'k'.repeat(256) }],
])('refuses %s without sending it', async (_, change) => {
  let requests = 0;
  const provider = await serve(() => (requests += 1));

  const error = await faultOf(provider.charge({ ...charge, ...change }));

  expect(error).toMatchObject({ reason: 'refused', retryable: false });
  expect(requests).toBe(0);
});

test('reports every wrong option at once', () => {
  const build = (): unknown =>
    createHttpPaymentProvider({ baseUrl: 'ftp://x', timeoutMs: 0, idempotencyWindowMs: 1.5, caller: 'a\nb' });

  expect(build).toThrow(ConfigurationError);
  expect(build).toThrow(/4 wrong options.*baseUrl: .*timeoutMs: .*idempotencyWindowMs: .*caller: /s);
});

test('fills in the defaults and keeps a path prefix of the base URL', () => {
  const resolved = resolveHttpPaymentProviderOptions({ baseUrl: 'https://pay.example/api/' });

  expect(resolved).toMatchObject({
    chargesUrl: 'https://pay.example/api/v1/charges',
    timeoutMs: 10_000,
    idempotencyWindowMs: 86_400_000,
    caller: undefined,
  });
});

test.each(['http://user:secret@x', 'http://x?a=1', 'http://x#y', 'not a url', ''])(
  'does not take %j as a base URL',
  (baseUrl) => {
    expect(() => resolveHttpPaymentProviderOptions({ baseUrl })).toThrow(/baseUrl/);
  },
);
