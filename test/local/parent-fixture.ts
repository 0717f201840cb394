/**
 * A parent with every kind of child: both servers, one child that refuses SIGTERM, one that was stopped, one that is gone.
 * Prints what it started as one line of JSON and then waits to be killed. With the argument `leave` it ends by itself.
 * The first argument is a file that the stopped child makes when it ends in order.
 */
import { startLocalBackends } from '../../src/local/backends.ts';
import { startChild, type Child } from '../../src/local/child-process.ts';

const WAIT_FOREVER = 'setInterval(() => undefined, 1e9); console.log("ready");';

const evidence = process.argv[2] ?? '';
const backends = await startLocalBackends();
const stubborn = await startedChild('stubborn', `process.on("SIGTERM", () => undefined); ${WAIT_FOREVER}`);
const frozen = await startedChild(
  'frozen',
  `process.on("SIGTERM", () => { require("node:fs").writeFileSync(${JSON.stringify(evidence)}, ""); process.exit(0); }); ${WAIT_FOREVER}`,
);
frozen.signal('SIGSTOP');
const stopped = await startedChild('stopped', WAIT_FOREVER);
await stopped.stop();

process.stdout.write(
  `${JSON.stringify({
    stubborn: stubborn.pid,
    frozen: frozen.pid,
    sqsPort: Number(new URL(backends.sqsEndpoint).port),
    dynamodbPort: Number(new URL(backends.dynamodbEndpoint).port),
  })}\n`,
);
if (process.argv.includes('leave')) process.exit(0);

function startedChild(name: string, script: string): Promise<Child> {
  return new Promise((resolve) => {
    const child: Child = startChild({
      name,
      command: process.execPath,
      args: ['-e', script],
      onStdoutLine: () => {
        resolve(child);
      },
    });
  });
}
