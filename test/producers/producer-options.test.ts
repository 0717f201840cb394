import { afterAll, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import {
  PRODUCER_DEFAULTS,
  resolveProducerOptions,
  type ProducerOptions,
} from '../../src/producers/producer-options.ts';
import { localQueueClient } from '../support/local-sqs.ts';

const client = localQueueClient('http://127.0.0.1:1');
const QUEUE_URL = 'http://127.0.0.1:1/000000000000/charges';

afterAll(() => {
  client.destroy();
});

function faultsOf(options: Partial<ProducerOptions>): string[] {
  try {
    resolveProducerOptions({ client, queueUrl: QUEUE_URL, ...options });
    return [];
  } catch (error) {
    return error instanceof ConfigurationError ? error.faults.map(({ name }) => name) : [String(error)];
  }
}

test('fills in the defaults of a producer', () => {
  const resolved = resolveProducerOptions({ client, queueUrl: QUEUE_URL });

  expect(resolved).toMatchObject({
    maxAttempts: PRODUCER_DEFAULTS.maxAttempts,
    deadlineMs: PRODUCER_DEFAULTS.deadlineMs,
    maxConcurrentRequests: PRODUCER_DEFAULTS.maxConcurrentRequests,
    backoff: { baseMs: PRODUCER_DEFAULTS.backoffBaseMs, capMs: PRODUCER_DEFAULTS.backoffCapMs },
  });
});

test('reports all wrong options of a producer together', () => {
  const faults = faultsOf({ queueUrl: 'charges', maxAttempts: 0, deadlineMs: 99, maxConcurrentRequests: 1.5 });

  expect(faults).toEqual(['queueUrl', 'maxAttempts', 'deadlineMs', 'maxConcurrentRequests']);
});

test('refuses a first wait that is above the longest wait', () => {
  expect(faultsOf({ backoffBaseMs: 200, backoffCapMs: 100 })).toEqual(['backoffBaseMs']);
});

test('sends one request at a time to a FIFO queue, whose order two at once could break', () => {
  const queueUrl = `${QUEUE_URL}.fifo`;

  expect(resolveProducerOptions({ client, queueUrl }).maxConcurrentRequests).toBe(1);
  expect(faultsOf({ queueUrl, maxConcurrentRequests: 2 })).toEqual(['maxConcurrentRequests']);
});

test('says the name, the rule and the value of a wrong option', () => {
  expect(() => resolveProducerOptions({ client, queueUrl: QUEUE_URL, maxAttempts: 21 })).toThrow(
    /maxAttempts: a whole number from 1 to 20 tries \(got 21\)/,
  );
});
