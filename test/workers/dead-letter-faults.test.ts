import { expect, test } from 'vitest';
import { interceptCommand, refusedConnection, serviceError } from '../support/worker-faults.ts';
import { workerLab, type Bench } from '../support/worker-fixture.ts';

const lab = workerLab();

/** A worker whose first sends to the dead-letter queue fail; counts the deletes at the time of each. */
function runWithFailingSends(bench: Bench, failures: readonly Error[]) {
  let [sends, deletes] = [0, 0];
  const deletesBeforeSend: number[] = [];
  const run = bench.run({
    prepare: ({ client }) => {
      interceptCommand(client, 'SendMessageCommand', (_input, send) => {
        deletesBeforeSend.push(deletes);
        const failure = failures[sends];
        sends += 1;
        return failure === undefined ? send() : Promise.reject(failure);
      });
      interceptCommand(client, 'DeleteMessageBatchCommand', (_input, send) => {
        deletes += 1;
        return send();
      });
    },
  });
  return { run, deletesBeforeSend, sends: () => sends };
}

test('repeats the send to the dead-letter queue, and deletes the message only after it was taken', async () => {
  const bench = await lab.open();
  const faults = [refusedConnection(), serviceError('ServiceUnavailable', 503)];
  const { run, deletesBeforeSend } = runWithFailingSends(bench, faults);
  await bench.send('no JSON');

  await run.when('invalid');

  expect(deletesBeforeSend).toEqual([0, 0, 0]);
  expect([(await bench.deadLetters()).length, await bench.depth()]).toEqual([1, 0]);
});

test('leaves a message on its queue while the dead-letter queue does not take it', async () => {
  const bench = await lab.open({ visibilityTimeoutSeconds: 2 });
  const denied = serviceError('AccessDenied', 403);
  const { run, sends } = runWithFailingSends(bench, [denied]);
  await bench.send('no JSON');
  await run.when('invalid');
  const depthAfterFailure = await bench.depth();

  await run.when('invalid', 2);

  expect([depthAfterFailure, sends()]).toEqual([1, 2]);
  expect([(await bench.deadLetters()).length, await bench.depth()]).toEqual([1, 0]);
});
